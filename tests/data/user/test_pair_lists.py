"""Pairs and groups from a user's own files: what they mean, and one line for every mistake in them."""

import json

import pytest
import torch
from own_pictures import drawn, saved
from scipy import stats

import unweave as uw
from unweave.data import Sampler, explain, load_data, supervised_info
from unweave.data.prefetch import BatchPrefetcher, step_keys
from unweave.data.user.inspection import data_summary, describe, skipped_files
from unweave.data.user.pair_lists import resolve_pairs_file
from unweave.errors import UserError
from unweave.ops.noise import fold
from unweave.training.sweep import fit

TINY = dict(steps=2, batch=4, net="small", latents=2, device="cpu")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Pictures a/0.png ... a/3.png, b/0.png ... b/3.png, and a broken one; the table files go beside."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    for number in range(8):
        place = tmp_path / "p" / "ab"[number // 4] / str(number % 4)
        saved(drawn(16, 16, colour=(number * 30, 90, 10)), place, "RGB")
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
    assert said.endswith("pairs.csv. There are 3 of them. Row 1 is taken for a header.")


def test_many_keys_at_once_and_ahead_of_time(root):
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
        assert torch.equal(next(stream).pair / 255.0, sampler(key, 4).pair)
    finally:
        stream.close()


def test_pairs_on_a_part_of_a_folder(root):
    text = pairs_text(root, PAIRS + "a/3.png,b/broken.png\n")
    whole = load_data(root, size=16)
    assert "3 of them; 1 more name a picture that is not in this data set" in explain(text, whole)
    part = load_data("subset", data=whole, indices=[7, 4, 2])
    plan = Sampler(part, ("x", "pair"), text).plan(torch.tensor(0), 50)
    assert set(zip(plan["x"].tolist(), plan["pair"].tolist())) == {(0, 1), (1, 0)}
    assert "1 of them; 3 more" in explain(text, part)
    noisy = load_data("noisy", data=part)
    assert torch.equal(Sampler(noisy, ("pair",), text).plan(torch.tensor(0), 50)["pair"], plan["pair"])
    with pytest.raises(UserError, match="has no pair of two pictures of data 'subset'"):
        Sampler(load_data("subset", data=whole, indices=[3]), ("x", "pair"), text)


def test_pairs_may_say_what_they_share(root):
    data = load_data(root, size=16)
    text = pairs_text(root, "first,second,shares\na/0.png,a/1.png,Content\nb/2.png,a/0.png,style\n")
    plan = Sampler(data, ("x", "pair", "shared"), text).plan(torch.tensor(0), 200)
    listed = {frozenset(pair): shared for *pair, shared in zip(*(plan[n].tolist() for n in ("x", "pair", "shared")))}
    assert sorted(listed.values()) == [0, 1]
    index = data.source_info.file_names.index
    assert listed[frozenset({index("a/0.png"), index("a/1.png")})] == 0
    assert "2 of them, 1 sharing content and 1 style. Row 1 is taken for a header." in explain(text, data)
    plain = pairs_text(root, "a/0.png,a/1.png\n")
    with pytest.raises(UserError, match="do not say what they share.*; give every row a third entry, content or style"):
        Sampler(data, ("x", "pair", "shared"), plain)
    with pytest.raises(UserError, match="needs pair, shared; give --pairs, a .csv with two file names and content or"):
        Sampler(data, ("x", "pair", "shared"), "none")


BAD_PAIRS = [
    ("a/0.png,a/9.png\n", r"pairs.csv', row 1: 'a/9.png' is no picture of the folder; one there is called 'a/0.png'"),
    ("first,second\na/0.png,a/1.png\na/0.png\n", "row 3: has one entry only; give two file names"),
    (",a/1.png\n", "row 1: has one entry only"),
    ("a/0.png,a/1.png,a/2.png\n", "row 1: its third entry is 'a/2.png'; give content or style"),
    ("a/0.png,a/1.png,content,x\n", "row 1: has 4 entries; give two file names"),
    ("a/0.png,a/1.png,style\na/0.png,b/2.png\n", "row 2: has two entries where other rows have three"),
    ("a/0.png,a/1.png,style\na/0.png,b/2.png,both\n", "row 2: its third entry is 'both'; give content or style"),
    ("a/0.png,a/1.png\nb/2.png,b/2\n", "row 2: 'b/2.png' is paired with itself"),
    ("a/0.png,a/1.png\n\na/1.png,a/0.png\n", "row 3: the pair 'a/1.png', 'a/0.png' is in row 1 already"),
    ("0.png,a/1.png\n", "row 1: '0.png' fits several pictures; give its path in the folder"),
    ("c/broken.jpg,a/1.png\n", "row 1: 'c/broken.jpg' is no picture"),
    ("", "has no rows; give two file names a row"),
    ("first,second\n", "has no rows below its header; give two file names a row"),
    ('a/0.png,"a/1.png\n', "cannot be read as a table"),
]


@pytest.mark.parametrize(("text", "said"), BAD_PAIRS)
def test_mistakes_in_pairs_are_one_line_with_file_and_row(root, text, said):
    data = load_data(root, size=16)
    with pytest.raises(UserError, match=said) as error:
        Sampler(data, ("x", "pair"), pairs_text(root, text))
    assert "\n" not in str(error.value) and "pairs.csv" in str(error.value)


def test_a_picture_of_another_sub_folder_is_not_meant(root):
    saved(drawn(16, 16), root / "b" / "only", "RGB")
    data = load_data(root, size=16)
    Sampler(data, ("x", "pair"), pairs_text(root, f"{root}/b/only.png,a/0.png\n"))
    Sampler(data, ("x", "pair"), pairs_text(root, "./b/ONLY.png\ta/0.png\n"))
    with pytest.raises(UserError, match="'a/only.png' is no picture of the folder"):
        Sampler(data, ("x", "pair"), pairs_text(root, "a/only.png,a/0.png\n"))


def test_where_listed_pairs_make_no_sense(root):
    data, text = load_data(root, size=16), pairs_text(root)
    for wrong, needs, said in [
        (text, ("x", "pair", "changed"), "the method needs changed"),
        (text, ("x",), "needs only x"),
        (text.replace(")", ", k=1)"), ("x", "pair"), "both file and k"),
        ("pairs(file=3)", ("x", "pair"), "file=3 is not accepted"),
        ("pairs(file='no.csv')", ("x", "pair"), "no.csv' is not there; give a .csv with two file names a row"),
    ]:
        with pytest.raises(UserError, match=said):
            Sampler(data, needs, wrong)
    with pytest.raises(UserError, match="of picture files, which data 'digits' is not; give a folder"):
        Sampler(load_data("digits"), ("x", "pair"), text)


@pytest.mark.filterwarnings("ignore::unweave.errors.UserNotice")
def test_a_run_remembers_its_pairs(root, monkeypatch):
    monkeypatch.chdir(root.parent)
    table(root, "pairs.csv", PAIRS)
    data, out = load_data(root, size=16, resident=False), root.parent / "run"  # batches are fetched ahead
    run = uw.train("ada_gvae", data, supervision="pairs(file='pairs.csv')", out=out, **TINY)
    text = json.loads((out / "config.json").read_text())["supervision"]
    assert text == run.config.supervision == resolve_pairs_file("pairs(file='pairs.csv')") == resolve_pairs_file(text)
    monkeypatch.chdir("/")
    again = Sampler(uw.load(out).data, ("x", "pair"), text)
    assert torch.equal(again.draw.index_L2, torch.tensor([[0, 1], [2, 6], [4, 7]]))
    (out / "weights.safetensors").unlink()  # as if interrupted
    table(root, "pairs.csv", PAIRS.replace("b/3", "b/1"))
    with pytest.raises(UserError, match=r"the pairs in '.*pairs.csv' are not those the run was made with"):
        Sampler(data, ("x", "pair"), text)
    assert uw.load(out).method is not None  # what was learnt needs no pairs
    table(root, "pairs.csv", PAIRS)
    assert uw.resume(out).folder.finished


# --- groups ----------------------------------------------------------------------------------------------------------


def test_groups_are_a_factor(root):
    data = load_data(root, size=16, groups=table(root, "groups.csv", "file,who\n" + GROUPS))
    assert data.factor_names == ("folder", "group") and data.factor_values[1] == ("007", "7", "red")
    assert data.factors(torch.arange(8))[:, 1].tolist() == [2, 2, 2, -1, 0, 0, 1, -1]
    assert data.values(torch.arange(8))[:, 1].isnan().tolist() == [False] * 3 + [True] + [False] * 3 + [True]
    told = "\n".join(data_summary(data))
    for part in ("row 1 of groups.csv is used as a header", "2 images are in no group",
                 "1 group has only one image and cannot be trained on: 7"):  # fmt: skip
        assert part in told
    assert "2 factors, from the names of the sub-folders and" in " ".join(section.heading for section in describe(data))
    text = "groups(by=['group'], size=2)"
    plan = Sampler(data, ("groups", "group_id"), text).plan(torch.tensor(1), 400)
    assert {tuple(sorted(row)) for row in plan["groups"].tolist()} == {(0, 1), (0, 2), (1, 2), (4, 5)}
    assert supervised_info(data, text).groups == 2 and "1 smaller ones are left out" in explain(text, data)
    again = load_data(data.name, **json.loads(json.dumps(data.options)))
    assert torch.equal(again.classes, data.classes)
    table(root, "groups.csv", GROUPS.replace("red", "blue"))
    with pytest.raises(UserError, match=r"factors in '.*groups.csv' are not those"):
        load_data(data.name, **data.options)


BAD_GROUPS = [
    ("a/9.png,red\n", "groups.csv', row 1: 'a/9.png' is no picture of the folder"),
    ("a/0.png,red\na/1.png\n", "row 2: has one entry only; give a file name and a group name"),
    ("a/0.png,red\na/1.png,red\na/0.png,red\n", "row 3: 'a/0.png' is in row 1 already"),
    ("a/0.png,red\na/1.png,red\na/0.png,blue\n", "row 3: 'a/0.png' is in row 1 already"),
    ("a/0.png,red\na/1.png,blue\n", "every group has one picture only"),
    ("\n\n", "has no rows"),
    ("file,group\n", "has no rows below its header"),
]


@pytest.mark.parametrize(("text", "said"), BAD_GROUPS)
def test_mistakes_in_groups_are_one_line_with_file_and_row(root, text, said):
    with pytest.raises(UserError, match=said) as error:
        load_data(root, size=16, groups=table(root, "groups.csv", text))
    assert "\n" not in str(error.value) and "groups.csv" in str(error.value)


def test_groups_beside_a_table_of_factors(root):
    factors = table(root, "f.csv", "file,light,group\n" + "".join(f"a/{i}.png,{i},{i % 2}\n" for i in range(4)))
    groups = table(root, "groups.csv", GROUPS)
    with pytest.raises(UserError, match="already has a factor 'group'"):
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
    assert [line.partition(":")[0] for line in skipped_files(data)] == [
        "skipped 1 file",
        "1 group has only one image and cannot be trained on",
    ]


@pytest.mark.filterwarnings("ignore::unweave.errors.UserNotice")
def test_a_run_that_did_not_note_what_is_left_out_is_gone_on_with(root):
    runs = [{"method": "vae", "data": load_data(root, size=16), **TINY}]
    (run,) = fit(runs, out=root.parent / "runs")
    config = {name: value for name, value in run.config.items() if name != "left_out"}
    assert config != run.config
    run.folder.write_json("config.json", config)
    (again,) = fit(runs, out=root.parent / "runs", resume=True)
    assert again.folder.path == run.folder.path
