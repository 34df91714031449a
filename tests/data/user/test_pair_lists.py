"""Pairs and groups from files of the user, and the errors in such files."""

import json

import pytest
import torch
from image_files import draw_image, save_image
from mentions import mentions
from raises import raises
from scipy import stats

import unweave as uw
from unweave.data import Sampler, explain, load_data, parse_supervision
from unweave.data.prefetch import BatchPrefetcher, step_keys
from unweave.data.storage.digest import changed_parts
from unweave.data.supervision import FilePairs
from unweave.data.user.inspection import data_summary, describe, skipped_files
from unweave.ops.noise import fold
from unweave.training.sweep import fit

TINY = dict(steps=2, batch=4, net="small", latents=2, device="cpu")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A folder with images a/0.png ... b/3.png and an unreadable file; tables are written beside it."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    for number in range(8):
        place = tmp_path / "p" / "ab"[number // 4] / str(number % 4)
        save_image(draw_image(16, 16, colour=(number * 30, 90, 10)), place, "RGB")
    (tmp_path / "p" / "b" / "broken.png").write_text("no")
    return tmp_path / "p"


def table(root, name, text):
    path = root.parent / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


PAIRS = "first,second\na/0.png,a/1.png\n\na/2,b/2.png\nb/0.png,b/3.png\n"
GROUPS = "a/0.png,red\na/1.png,red\na/2.png,red\nb/0.png,007\nb/1.png,007\nb/2.png,7\n"


def pairs_text(root, text=PAIRS):
    return f"pairs(file={str(table(root, 'pairs.csv', text))!r})"


def test_listed_pairs_are_drawn_uniformly_in_either_order(root):
    data, text = load_data(root, size=16), pairs_text(root)
    sampler = Sampler(data, ("x", "x_other", "pair", "x_index"), text)
    plan = sampler.plan(torch.tensor(3), 6000)
    counts = {}
    for pair in zip(plan["x"].tolist(), plan["pair"].tolist()):
        counts[pair] = counts.get(pair, 0) + 1
    assert sorted(counts) == [(0, 1), (1, 0), (2, 6), (4, 7), (6, 2), (7, 4)]
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3
    assert torch.equal(plan["x_index"], plan["x"]) and "changed" not in plan
    assert set(plan["x_other"].tolist()) == {0, 1, 2, 4, 6, 7} and not torch.equal(plan["x_other"], plan["x"])
    batch = sampler(torch.tensor(3), 5)
    assert torch.equal(batch.pair, data.images(sampler.plan(torch.tensor(3), 5)["pair"])) and batch.changed is None
    said = explain(text, data)
    assert "pairs.csv" in said and "3 of them" in said and "header" in said


def test_vmapped_and_prefetched_pairs(root):
    data = load_data(root, size=16)
    sampler = Sampler(data, ("x", "pair"), pairs_text(root))
    keys = fold(torch.tensor(5), torch.arange(6))
    together_x, together_pair = torch.vmap(lambda key: sampler(key, 4)[:3:2])(keys)
    alone = [sampler(key, 4) for key in keys]
    assert torch.equal(together_pair, torch.stack([batch.pair for batch in alone]))
    assert torch.equal(together_x, torch.stack([batch.x for batch in alone]))
    stream = BatchPrefetcher(sampler, step_keys(0, 0), 4)
    try:
        key = next(step_keys(0, 0))[0]
        assert torch.equal(stream.draw()[0].pair / 255.0, sampler(key, 4).pair)
    finally:
        stream.close()


def test_pairs_on_a_part_of_a_folder(root):
    text = pairs_text(root, PAIRS + "a/3.png,b/broken.png\n")
    whole = load_data(root, size=16)
    assert mentions(explain(text, whole), "3 of them", "1 more")
    part = load_data("subset", data=whole, indices=[7, 4, 2])
    plan = Sampler(part, ("x", "pair"), text).plan(torch.tensor(0), 50)
    assert set(zip(plan["x"].tolist(), plan["pair"].tolist())) == {(0, 1), (1, 0)}
    assert mentions(explain(text, part), "1 of them", "3 more")
    noisy = load_data("noisy", data=part)
    assert torch.equal(Sampler(noisy, ("pair",), text).plan(torch.tensor(0), 50)["pair"], plan["pair"])
    with raises("pairs", accepted="at least one pair of images of the data"):
        Sampler(load_data("subset", data=whole, indices=[3]), ("x", "pair"), text)


def test_third_column_of_pairs(root):
    data = load_data(root, size=16)
    text = pairs_text(root, "first,second,shares\na/0.png,a/1.png,Content\nb/2.png,a/0.png,style\n")
    plan = Sampler(data, ("x", "pair", "shared"), text).plan(torch.tensor(0), 200)
    listed = {frozenset(pair): shared for *pair, shared in zip(*(plan[n].tolist() for n in ("x", "pair", "shared")))}
    assert sorted(listed.values()) == [0, 1]
    index = data.source_info.file_names.index
    assert listed[frozenset({index("a/0.png"), index("a/1.png")})] == 0
    assert "1 sharing content and 1 style" in explain(text, data)
    plain = pairs_text(root, "a/0.png,a/1.png\n")
    with raises("supervision") as error:
        Sampler(data, ("x", "pair", "shared"), plain)
    assert "third entry" in error.value.accepted
    with raises("supervision", value="none", accepted=f"give {FilePairs.file_option}"):
        Sampler(data, ("x", "pair", "shared"), "none")


INVALID_PAIRS = [  # the text, the row of the error, its value
    ("a/0.png,a/9.png\n", 1, "a/9.png"),
    ("first,second\na/0.png,a/1.png\na/0.png\n", 3, 1),
    (",a/1.png\n", 1, ...),
    ("a/0.png,a/1.png,a/2.png\n", 1, "a/2.png"),
    ("a/0.png,a/1.png,content,x\n", 1, 4),
    ("a/0.png,a/1.png,style\na/0.png,b/2.png\n", 2, ""),
    ("a/0.png,a/1.png,style\na/0.png,b/2.png,both\n", 2, "both"),
    ("a/0.png,a/1.png\nb/2.png,b/2\n", 2, "b/2.png"),
    ("a/0.png,a/1.png\n\na/1.png,a/0.png\n", 3, ("a/1.png", "a/0.png")),
    ("0.png,a/1.png\n", 1, "0.png"),
    ("c/broken.jpg,a/1.png\n", 1, "c/broken.jpg"),
    ("", None, ...),
    ("first,second\n", None, ...),
    ('a/0.png,"a/1.png\n', None, ...),
]


@pytest.mark.parametrize(("text", "row", "value"), INVALID_PAIRS)
def test_invalid_pairs_are_an_error_with_file_and_row(root, text, row, value):
    data = load_data(root, size=16)
    with raises("pairs", value=value) as error:
        Sampler(data, ("x", "pair"), pairs_text(root, text))
    assert "pairs.csv" in str(error.value) and ("row " in str(error.value)) == (row is not None)
    assert row is None or f"row {row}:" in str(error.value)


def test_images_are_found_by_their_sub_folder(root):
    save_image(draw_image(16, 16), root / "b" / "only", "RGB")
    data = load_data(root, size=16)
    Sampler(data, ("x", "pair"), pairs_text(root, f"{root}/b/only.png,a/0.png\n"))
    Sampler(data, ("x", "pair"), pairs_text(root, "./b/ONLY.png\ta/0.png\n"))
    with raises("pairs", value="a/only.png"):
        Sampler(data, ("x", "pair"), pairs_text(root, "a/only.png,a/0.png\n"))


def test_invalid_use_of_listed_pairs(root):
    data, text = load_data(root, size=16), pairs_text(root)
    for wrong, needs, argument in [
        (text, ("x", "pair", "changed"), "supervision"),
        (text, ("x",), "supervision"),
        (text.replace(")", ", k=1)"), ("x", "pair"), "k"),
        ("pairs(file=3)", ("x", "pair"), "file"),
        ("pairs(file='no.csv')", ("x", "pair"), "pairs"),
    ]:
        with raises(argument):
            Sampler(data, needs, wrong)
    with raises("data", value="digits", accepted="a folder of images"):
        Sampler(load_data("digits"), ("x", "pair"), text)


@pytest.mark.filterwarnings("ignore::unweave.errors.UserNotice")
def test_a_run_stores_path_and_fingerprint_of_its_pairs(root, monkeypatch):
    monkeypatch.chdir(root.parent)
    table(root, "pairs.csv", PAIRS)
    data, out = load_data(root, size=16, resident=False), root.parent / "run"  # batches are fetched ahead
    run = uw.train("ada_gvae", data, supervision="pairs(file='pairs.csv')", out=out, keep_state=True, **TINY)
    text = json.loads((out / "config.json").read_text())["supervision"]
    parsed = parse_supervision("pairs(file='pairs.csv')", data)
    assert text == run.config.supervision == parsed.text == parse_supervision(text, data).text
    monkeypatch.chdir("/")
    again = Sampler(uw.load(out).data, ("x", "pair"), text)
    assert torch.equal(again.tables.lookup[0], torch.tensor([[0, 1], [2, 6], [4, 7]]))
    (out / "weights.safetensors").unlink()  # as if interrupted
    table(root, "pairs.csv", PAIRS.replace("b/3", "b/1"))
    with raises("pairs", value=str(root.parent / "pairs.csv"), accepted="the original file"):
        Sampler(data, ("x", "pair"), text)
    assert uw.load(out).method is not None  # a trained model needs no pairs
    table(root, "pairs.csv", PAIRS)
    assert uw.resume(out).folder.finished


# --- groups ----------------------------------------------------------------------------------------------------------


def test_groups_are_a_factor(root):
    data = load_data(root, size=16, groups=table(root, "groups.csv", "file,who\n" + GROUPS))
    assert data.factor_names == ("folder", "group") and data.factor_values[1] == ("007", "7", "red")
    assert data.factors(torch.arange(8))[:, 1].tolist() == [2, 2, 2, -1, 0, 0, 1, -1]
    assert data.values(torch.arange(8))[:, 1].isnan().tolist() == [False] * 3 + [True] + [False] * 3 + [True]
    summary = "\n".join(data_summary(data))
    for part in ("row 1 of groups.csv", "2 images", ": 7"):
        assert part in summary
    assert "2 factors" in " ".join(section.heading for section in describe(data))
    text = "groups(by=['group'], size=2)"
    plan = Sampler(data, ("groups", "group_id"), text).plan(torch.tensor(1), 400)
    assert {tuple(sorted(row)) for row in plan["groups"].tolist()} == {(0, 1), (0, 2), (1, 2), (4, 5)}
    assert parse_supervision(text, data).info(data).groups == 2 and mentions(explain(text, data), "2 groups", "1 ")
    again = load_data(data.name, **json.loads(json.dumps(data.options)))
    assert torch.equal(again.classes, data.classes)
    table(root, "groups.csv", GROUPS.replace("red", "blue"))
    assert changed_parts(data.digest, load_data(data.name, **data.options).digest) == ("factors",)


INVALID_GROUPS = [
    ("a/9.png,red\n", "row 1", "a/9.png"),
    ("a/0.png,red\na/1.png\n", "row 2", 1),
    ("a/0.png,red\na/1.png,red\na/0.png,red\n", "row 3", "a/0.png"),
    ("a/0.png,red\na/1.png,red\na/0.png,blue\n", "row 3", "a/0.png"),
    ("a/0.png,red\na/1.png,blue\n", "", ...),
    ("\n\n", "", ...),
    ("file,group\n", "", ...),
]


@pytest.mark.parametrize(("text", "row", "value"), INVALID_GROUPS)
def test_invalid_groups_are_an_error_with_file_and_row(root, text, row, value):
    with raises("groups", value=value) as error:
        load_data(root, size=16, groups=table(root, "groups.csv", text))
    assert "groups.csv" in str(error.value) and row in str(error.value)


def test_groups_together_with_a_table_of_factors(root):
    factors = table(root, "f.csv", "file,light,group\n" + "".join(f"a/{i}.png,{i},{i % 2}\n" for i in range(4)))
    groups = table(root, "groups.csv", GROUPS)
    with raises("groups", value=str(groups), accepted="given with a table without a factor 'group'"):
        load_data(root, size=16, factors=factors, groups=groups)
    data = load_data(root, size=16, factors=factors, groups=groups, columns=["light"])
    assert data.factor_names == ("light", "group") and data.classes.shape == (8, 2)


@pytest.mark.filterwarnings("ignore::unweave.errors.UserNotice")
def test_groups_inside_the_folder_and_a_run_on_them(root):
    (root / "groups.csv").write_text(GROUPS)
    data = load_data(root, size=16, groups=root / "groups.csv")
    assert set(data.source_info.unreadable_files) == {"b/broken.png"}
    out = root.parent / "run"
    run = uw.train("ml_vae", data, supervision="groups(by=['group'], size=2)", out=out, **TINY)
    assert run.config.data_options["groups"] == str(root / "groups.csv")
    assert uw.load(out).data.factor_names == ("folder", "group")
    assert run.config.notices == skipped_files(data) == skipped_files(load_data("split", data=data, part="train"))
    files, groups = skipped_files(data)
    assert files.endswith(": b/broken.png") and groups.startswith("1 group ")


@pytest.mark.filterwarnings("ignore::unweave.errors.UserNotice")
def test_a_run_without_recorded_notices_can_be_resumed(root):
    runs = [{"method": "vae", "data": load_data(root, size=16), **TINY}]
    (run,) = fit(runs, out=root.parent / "runs")
    assert run.config.notices
    stored = {name: value for name, value in run.config.to_json().items() if name != "notices"}
    run.folder.write_json("config.json", stored)
    (again,) = fit(runs, out=root.parent / "runs", resume=True)
    assert again.folder.path == run.folder.path
