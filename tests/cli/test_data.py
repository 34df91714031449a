"""A user's own images on the command line: what works, and one line for each error."""

import json

import numpy as np
import pytest
import torch
from command import unweave
from image_files import draw_image, mixed_folder, save_image
from mentions import mentions
from PIL import Image

import unweave as uw

TINY = ["--set", "net=small", "--set", "latents=3", "--steps", "3", "--batch", "4", "--device", "cpu"]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path_factory.mktemp("cache")))


def test_300_mixed_images_train_in_one_command(tmp_path, capsys):
    table = mixed_folder(tmp_path / "pictures", 300)
    run = tmp_path / "run"
    words = ["train", "beta_vae", "--data", tmp_path / "pictures", "--factors", table, "--size", "32", *TINY]
    code, _, err = unweave(capsys, *words, "--out", run)
    assert code == 0, err
    for part in (
        "300 images",
        "32 x 32",
        "shape, radius, light, stars",
        "a/broken.png: damaged",
        "notes.txt: not an image",
        "gone.png",
    ):
        assert part in err, part
    config = json.loads((run / "config.json").read_text())
    assert config["data_options"]["path"] == str(tmp_path / "pictures") and config["data_digest"].startswith("300-")
    assert (run / "samples" / "traversals.png").exists()
    assert unweave(capsys, "train", "--resume", run)[0] == 0
    next((tmp_path / "pictures" / "b").iterdir()).unlink()
    code, _, err = unweave(capsys, "evaluate", run)
    assert code == 2 and mentions(err, "300", "299") and err.count("\n") == 1


def test_options_determine_the_images(tmp_path, capsys):
    for number in range(4):
        save_image(draw_image(40, 20), tmp_path / "p" / f"{number}", "RGB")
    words = ["train", "vae", "--data", tmp_path / "p", "--size", "16", "--fit", "pad", "--channels", "gray", *TINY]
    assert unweave(capsys, *words, "--out", tmp_path / "run")[0] == 0
    options = json.loads((tmp_path / "run" / "config.json").read_text())["data_options"]
    assert (options["size"], options["fit"], options["channels"]) == (16, "pad", "gray")


def test_images_without_factors_are_trained_reported_and_encoded(tmp_path, capsys):
    for number in range(6):
        image = draw_image(40, 20, colour=(number * 40, 0, 0))
        save_image(image, tmp_path / "p" / f"{number}", "RGBA" if number else "I;16")
    run = tmp_path / "run"
    code, _, err = unweave(capsys, "train", "vae", "--data", tmp_path / "p", "--size", "16", *TINY, "--out", run)
    assert code == 0 and "6 images" in err
    assert unweave(capsys, "evaluate", run)[0] == 0
    assert unweave(capsys, "report", run, "-o", tmp_path / "r.html")[0] == 0
    assert "<html" in (tmp_path / "r.html").read_text()
    assert unweave(capsys, "encode", run, tmp_path / "p", "-o", tmp_path / "codes.npz")[0] == 0
    trained = uw.load(run)
    with np.load(tmp_path / "codes.npz") as stored:
        assert np.allclose(stored["codes"], trained.encode(trained.data.images(torch.arange(6))), atol=1e-5)


def test_an_npz(tmp_path, capsys):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", images=rng.integers(0, 256, (20, 16, 16, 3), dtype=np.uint8), labels=np.arange(20) % 2)
    code, _, err = unweave(capsys, "train", "vae", "--data", tmp_path / "a.npz", *TINY, "--out", tmp_path / "run")
    assert code == 0, err
    assert mentions(err, "20 images", "16 x 16", "labels")


def test_inspect(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = mixed_folder(tmp_path / "pictures", 24)
    code, out, err = unweave(capsys, "data", "inspect", "pictures", "--factors", table, "--size", "32")
    assert code == 0, err
    for part in ("24 in 26 files", "32 x 32", "a/broken.png", "notes.txt", "4 factors"):
        assert part in out, part
    assert f"unweave train beta_vae --data pictures --factors {table} --size 32" in out
    for name in ("pictures.png", "factors.png"):
        Image.open(tmp_path / "inspect-pictures" / name).verify()
    code, out, _ = unweave(capsys, "data", "inspect", "digits", "--out", tmp_path / "there")
    assert code == 0 and "1,797 images" in out and (tmp_path / "there" / "pictures.png").exists()


def test_list(capsys):
    code, out, _ = unweave(capsys, "data", "list")
    assert code == 0 and "sprites" in out and "unweave data inspect PATH" in out


@pytest.fixture
def places(tmp_path):
    for name, count in (("one", 1), ("good", 4)):
        for number in range(count):
            save_image(draw_image(16, 16), tmp_path / name / f"{number}", "RGB")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.png").write_text("no")
    (tmp_path / "bad" / "b.txt").write_text("no")
    (tmp_path / "strange.csv").write_text("file,x\nphoto.png,1\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "a.npy").write_bytes(b"no")
    return tmp_path


BAD = [  # words, and what the message names
    (["empty"], "empty"),
    (["one"], "0.png"),
    (["bad"], "bad"),
    (["nothing/here"], "nothing/here"),
    (["strange.csv"], "strange.csv"),
    (["a.npy"], "a.npy"),
    (["good", "--factors", "strange.csv"], "photo.png"),
    (["good", "--factors", "empty.csv"], "empty.csv"),
    (["good", "--factors", "none.csv"], "none.csv"),
    (["good", "--fit", "cropp"], "'crop'"),
    (["good", "--channels", "grey"], "'gray'"),
    (["good", "--size", "3"], "size"),
    (["sprites", "--fit", "crop"], "'fit'"),
]


@pytest.mark.parametrize("command", [["train", "vae", *TINY, "--data"], ["data", "inspect"]], ids=["train", "inspect"])
@pytest.mark.parametrize(("words", "named"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_one_line_and_leaves_nothing(command, words, named, places, capsys, monkeypatch):
    monkeypatch.chdir(places)
    before = sorted(places.rglob("*"))
    code, _, err = unweave(capsys, *command, *words)
    assert code == 2
    assert err.startswith("error: ") and err.strip().count("\n") == 0
    assert named in err
    assert sorted(places.rglob("*")) == before


# --- pairs and groups from files -----------------------------------------------------------------------------------


WHOLE = "".join(f"{n}.png,{'ab'[n // 4]}\n" for n in range(8))  # groups that leave nothing out


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """Eight pictures, pairs and groups of them, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for number in range(8):
        save_image(draw_image(16, 16, colour=(number * 30, 9, 9)), tmp_path / "p" / f"{number}", "RGB")
    (tmp_path / "pairs.csv").write_text("left,right\n0.png,1.png\n2.png,3.png\n")
    (tmp_path / "groups.csv").write_text("".join(f"{n}.png,{'abc'[n // 3]}\n" for n in range(7)))
    return tmp_path


def test_pairs_from_a_file(listed, capsys):
    words = ["--data", "p", "--size", "16", *TINY]
    code, _, err = unweave(capsys, "train", "ada_gvae", *words, "--pairs", "pairs.csv", "--out", "run")
    assert code == 0, err
    assert "pairs.csv" in err and "Row 1" in err
    supervision = json.loads((listed / "run" / "config.json").read_text())["supervision"]
    assert f"pairs(file={str(listed / 'pairs.csv')!r}, fingerprint=" in supervision
    code, _, err = unweave(capsys, "train", "ada_gvae", *words, "--pairs", "pairs.csv", "--seeds", "0-1", "--out", "s")
    assert code == 0 and len(list((listed / "s").glob("*/config.json"))) == 2, err


def test_groups_from_a_file(listed, capsys):
    words = ["--data", "p", "--size", "16", *TINY, "--groups", "groups.csv"]
    code, _, err = unweave(capsys, "train", "ml_vae", *words, "--out", "run")
    assert code == 0, err
    assert "1 image " in err and ": c" in err
    config = json.loads((listed / "run" / "config.json").read_text())
    assert config["supervision"] == "groups(by=['group'], size=2)"
    assert config["data_options"]["groups"] == str(listed / "groups.csv")
    code, _, err = unweave(capsys, "train", "ml_vae", *words, "--supervision", "groups(by=['group'], size=3)")
    assert code == 0, err
    (notice,) = config["notices"]
    assert notice.startswith("1 group ") and notice.endswith(": c") and notice in err
    code, out, _ = unweave(capsys, "data", "inspect", "p", "--groups", "groups.csv")
    assert code == 0 and "unweave train ml_vae --data p --groups groups.csv" in out


def test_skipped_files_and_groups_are_reported_even_if_quiet(listed, capsys):
    (listed / "p" / "broken.png").write_text("no")
    words = ["ml_vae", "--data", "p", "--size", "16", *TINY, "--quiet", "--groups", "groups.csv"]
    code, _, err = unweave(capsys, "train", *words, "--out", "run")
    notices = json.loads((listed / "run" / "config.json").read_text())["notices"]
    assert code == 0 and err.splitlines() == [f"warning: {notice}" for notice in notices]
    assert len(notices) == 2 and notices[0].endswith(": broken.png") and notices[1].endswith(": c")
    (listed / "p" / "broken.png").unlink()
    (listed / "groups.csv").write_text(WHOLE)
    code, _, err = unweave(capsys, "train", *words, "--out", "whole")
    assert code == 0 and err == "" and json.loads((listed / "whole" / "config.json").read_text())["notices"] == []


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["ada_gvae", "--pairs", "no.csv"], "no.csv"),
        (["ada_gvae", "--pairs", "groups.csv"], "row 1: 'a'"),
        (["ada_gvae", "--pairs", "pairs.csv", "--groups", "groups.csv"], "--groups"),
        (["ada_gvae", "--pairs", "pairs.csv", "--supervision", "pairs(k=1)"], "pairs(k=1)"),
        (["vae", "--pairs", "pairs.csv"], "supervision"),
        (["vae", "--groups", "groups.csv"], "supervision"),
        (["ml_vae", "--groups", "pairs.csv"], "pairs.csv"),
        (["ada_gvae", "--pairs", "pairs.csv", "--set", "known_k=true"], "changed"),
    ],
)
def test_bad_lists_are_one_line_and_leave_nothing(words, named, listed, capsys):
    (listed / "groups.csv").write_text(WHOLE)
    code, _, err = unweave(capsys, "train", *words, "--data", "p", "--size", "16", *TINY, "--quiet", "--out", "run")
    assert code == 2 and named in err and err.strip().count("\n") == 0 and err.startswith("error: ")
    assert not (listed / "run").exists()
