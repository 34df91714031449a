"""Bad input at the command line and in files: one line about it, and nothing half-written.

The numbers in brackets are those of the defects that the tests reproduce.
"""

import io
import json
import os
import resource
import shlex
import shutil
import subprocess
import zipfile
from contextlib import contextmanager

import h5py
import numpy as np
import pytest
from command import unweave
from raises import raises

import unweave as uw
from unweave.errors import UserError
from unweave.metrics.npz import read_npz

TINY = ["--data", "digits", "--set", "net=mlp", "--steps", "2", "--batch", "4", "--device", "cpu", "--quiet"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Run each test in an empty folder, with an empty cache."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "run"
    uw.train("beta_vae", "digits", out=path, steps=2, batch=4, latents=3, net="mlp", device="cpu")
    return path


def refused(capsys, *words):
    """Run a command that must be refused; return its only line."""
    code, _, err = unweave(capsys, *words)
    line = err.strip().splitlines()[-1]
    assert code == 2 and line.startswith("error: "), err
    return line


# --- text of users on the console (B-H4) ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["\\[/x]", "x[/red]", "a[v2]", "[bold]", ":smile:", "\\"])
def test_brackets_and_backslashes_in_words_are_text(text, capsys):
    """(B-H4)"""
    assert repr(text) in refused(capsys, "list", text)


def test_the_next_commands_can_be_copied(folder, trained, capsys, monkeypatch):
    """(B-H4)"""
    monkeypatch.setenv("COLUMNS", "40")
    name = "x[/red] [v2] :smile: it's" + "long" * 20
    code, out, _ = unweave(capsys, "train", "beta_vae", *TINY, "--out", name)
    assert code == 0 and out.startswith(f"{name} is trained.")
    command = next(line for line in out.splitlines() if line.startswith("  unweave evaluate"))
    assert shlex.split(command) == ["unweave", "evaluate", name]
    assert (folder / name / "config.json").is_file()
    code, out, _ = unweave(capsys, "report", trained, "--out", f"{name}.html")
    assert code == 0 and out.startswith(f"{name}.html is written")


def test_control_characters_are_shown_as_escapes(folder, capsys):
    """(B: Low)"""
    name = "red\x1b[31m"
    code, out, err = unweave(capsys, "train", "beta_vae", *TINY, "--out", name)
    assert code == 0 and (folder / name).is_dir()
    assert "\x1b" not in out + err and "red\\x1b[31m is trained" in out
    assert "unweave evaluate $'red\\x1b[31m'" in out
    assert "\x1b" not in refused(capsys, "train", "beta_vae", *TINY, "--data", "\x1b[31m/x")


def test_a_name_that_is_not_utf8_can_be_printed(folder, capsys):
    """(B-H4)"""
    assert "x[v2].txt" in refused(capsys, "train", "vae", "--data", "caf\udce9/x[v2].txt")


def test_a_tilde_in_an_option_is_the_home_folder(folder, tmp_path, trained, capsys, monkeypatch):
    """(B: Low)"""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert unweave(capsys, "evaluate", trained, "--metrics", "mig", "--out=~/scores")[0] == 0
    assert (tmp_path / "scores" / "scores.json").is_file() and not list(folder.iterdir())


def test_an_unknown_strategy_is_refused_for_one_run(capsys):
    """(B: Low)"""
    assert "nonsense" in refused(capsys, "train", "beta_vae", *TINY, "--strategy", "nonsense")


@pytest.mark.parametrize(
    ("error", "named"),
    [
        (MemoryError(), "not enough memory"),
        (RecursionError(), "nested too deeply"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity"), "2.00 GiB"),
    ],
)
def test_exhausted_memory_is_one_line_in_every_command(error, named, capsys, monkeypatch):
    """(B: Low)"""

    def fail(*_):
        raise error

    monkeypatch.setattr("unweave.data.load_data", fail)
    assert named in refused(capsys, "data", "inspect", "digits")


# --- numbers (B-H5, B-M4) --------------------------------------------------------------------------------------------

DIGITS = "1" * 5000
NUMBERS = [  # options of train, and what the message names
    (["--seeds", "²"], "seeds"),
    (["--seeds", "٣-٤"], "seeds"),
    (["--seeds", DIGITS], "seeds"),
    (["--seeds", "0-9999,10000-19999"], "seeds"),
    (["--set", "latents=1e999"], "latents"),
    (["--set", "latents=1e20"], "latents"),
    (["--set", f"latents={DIGITS}"], "latents"),
    (["--set", "latents=nan"], "latents"),
    (["--set", "beta=nan"], "beta"),
    (["--set", "beta=1e39"], "beta"),
    (["--set", "beta=linear(0,4,10,nan)"], "beta"),
    (["--set", "beta=linear(0,4,inf)"], "beta"),
    (["--set", "beta=linear(0,nan,10)"], "beta"),
    (["--set", "beta=linear(0,1e39,10)"], "beta"),
    (["--set", "beta=linear(0,4,1e39)"], "beta"),
    (["--set", "beta=linear(0,4,0)"], "beta"),
    (["--lr", "linear(1e-3,0,10,nan)"], "lr"),
    (["--lr", "1e39"], "lr"),
    (["--lr", "²"], "lr"),
    (["--clip", "nan"], "clip"),
    (["--clip", "1e39"], "clip"),
    (["--init", "normal(1e39)"], "init"),
    (["--checkpoint-every", "nans"], "checkpoint_every"),
    (["--checkpoint-every", "²"], "checkpoint_every"),
    (["--seed", "9" * 30], "seed"),
    (["--device", "cpu:x"], "device"),
    (["--device", "cpu:99999"], "device"),
    (["--device", "cuda:" + DIGITS], "device"),
    (["--data", "split(data='digits', fraction=1e999)"], "fraction"),
    (["--data", f"sprites(size={DIGITS})"], "data"),
    (["--supervision", "labels(n=1e999)"], "n"),
]


@pytest.mark.parametrize(("options", "argument"), NUMBERS, ids=[f"{option} {v[:30]}" for (option, v), _ in NUMBERS])
def test_numbers_that_are_none_are_refused_before_anything_is_written(options, argument, folder, capsys):
    """(B-H5, B-M4)"""
    line = refused(capsys, "train", "beta_vae", *TINY, *options)
    assert f"{argument} " in line.replace("'", "").replace("-", "_") and len(line) < 2000
    assert not list(folder.iterdir())


@pytest.mark.parametrize("beta", [float("nan"), float("inf"), 1e39, 10**400, (0.0, 4.0, 10.0, float("nan"))])
def test_settings_in_python_that_are_not_finite(beta, folder):
    """(B-H5, B-M4)"""
    with raises("beta"):
        uw.train("beta_vae", "digits", net="mlp", beta=beta, steps=2, device="cpu", out="run")
    assert not list(folder.iterdir())


def test_numbers_of_evaluate(folder, trained, capsys):
    """(B-H5, B-H11)"""
    np.savez("codes.npz", codes=np.eye(20), factors=np.eye(20, 2))
    for options in (["--rows", "²"], ["--rows", DIGITS]):
        assert "rows " in refused(capsys, "evaluate", trained, *options)
    for options in (["--seed", "-1"], ["--seed", "9" * 30], ["--resamples", "100000000"], ["--device", "cpu:x"]):
        assert f"{options[0][2:]} must be" in refused(capsys, "evaluate", "codes.npz", *options)
    assert [path.name for path in folder.iterdir()] == ["codes.npz"]


# --- sizes (B-H7) ----------------------------------------------------------------------------------------------------

SIZES = [  # method, options of train, and what the message names
    ("beta_vae", ["--set", "latents=1e9"], "latents"),
    ("beta_vae", ["--set", "latents=1e7"], "latents"),
    ("factor_vae", ["--set", "discriminator_width=1e8"], "discriminator_width"),
    ("factor_vae", ["--set", "discriminator_depth=1e6"], "discriminator_depth"),
    ("aae_cluster", ["--set", "clusters=1e9"], "clusters"),
    ("aae", ["--set", "discriminator_steps=1e9"], "discriminator_steps"),
    ("generalized_m2", ["--set", "samples=1e9", "--supervision", "labels(n=100)"], "samples"),
    ("beta_vae", ["--batch", "1000000000"], "batch"),
    (
        "beta_vae",
        ["--data", "correlated(data='rooms(size=8)', factors=['floor_hue', 'wall_hue'], size=2000000000)"],
        "size",
    ),
]


@pytest.mark.parametrize(("method", "options", "argument"), SIZES, ids=[f"{m} {o[1][:20]}" for m, o, _ in SIZES])
def test_a_size_that_memory_cannot_hold_is_refused_by_name(method, options, argument, folder, capsys):
    """(B-H7)"""
    assert f"{argument} must be" in refused(capsys, "train", method, *TINY, *options)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(("field", "value"), [("batch", 10**9), ("latents", 10**9)])
def test_an_edited_size_does_not_exhaust_the_memory(field, value, trained, folder, capsys):
    """(B-H7)"""
    shutil.copytree(trained, folder / "edited")
    config = json.loads((folder / "edited" / "config.json").read_text())
    (config if field == "batch" else config["arguments"])[field] = value
    (folder / "edited" / "config.json").write_text(json.dumps(config))
    (folder / "edited" / "weights.safetensors").unlink()
    assert f"{field} must be smaller" in refused(capsys, "train", "--resume", "edited")


# --- files of arrays (B-H9) ------------------------------------------------------------------------------------------


def npy(array, shape=None):
    """Return the content of an .npy file, with another shape in its header if one is given."""
    file = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, header | ({} if shape is None else {"shape": shape}))
    return file.getvalue() + array.tobytes()


def zipped(path, members, sizes=()):
    """Write a .zip of these members; `sizes` are those that its directory states."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        for name, size in dict(sizes).items():
            archive.getinfo(name).file_size = size


CODES = np.random.default_rng(0).normal(size=(40, 3))
FACTORS = np.random.default_rng(0).integers(0, 3, (40, 2))
IMAGES = np.random.default_rng(0).integers(0, 256, (40, 8, 8), dtype=np.uint8)
ARRAYS = [  # members of an .npz, and the sizes that its directory states
    pytest.param({"codes.npy": npy(CODES, (10**10, 3))}, {}, id="a header that states too many rows"),
    pytest.param({"codes.npy": npy(CODES, (20, 3))}, {}, id="a header that states too few rows"),
    pytest.param({"codes.npy": npy(CODES, (-40, -3))}, {}, id="a header with negative sizes"),
    pytest.param(
        {"codes.npy": npy(CODES, (10**12, 3))}, {"codes.npy": 24 * 10**12 + 128}, id="an array larger than memory"
    ),
    pytest.param({"codes.npy": b"hello"}, {}, id="a member that is not an array"),
    pytest.param({"codes": npy(CODES)}, {}, id="a member without .npy"),
    pytest.param({"codes.npy": npy(np.array(3.0))}, {}, id="a number"),
]


@pytest.mark.parametrize(("members", "sizes"), ARRAYS)
def test_codes_that_are_not_as_their_file_says(members, sizes, folder, capsys):
    """(B-H9)"""
    zipped("codes.npz", {**members, "factors.npy": npy(FACTORS)}, sizes)
    assert "codes" in refused(capsys, "evaluate", "codes.npz", "--metrics", "mig")
    assert [path.name for path in folder.iterdir()] == ["codes.npz"]


@pytest.mark.parametrize(("members", "sizes"), ARRAYS[:5])
def test_images_that_are_not_as_their_file_says(members, sizes, folder, capsys):
    """(B-H9)"""
    zipped("images.npz", {**members, "images.npy": npy(IMAGES)}, sizes)
    assert "codes" in refused(capsys, "data", "inspect", "images.npz")
    (folder / "images.npy").write_bytes(npy(IMAGES, (10**10, 8, 8)))
    assert "images.npy" in refused(capsys, "data", "inspect", "images.npy")
    assert {path.name for path in folder.iterdir()} == {"images.npz", "images.npy"}


def test_a_flipped_byte_is_an_error_or_changes_nothing(folder):
    """(B-H9)"""
    np.savez_compressed("whole.npz", codes=CODES, factors=FACTORS)
    whole = (folder / "whole.npz").read_bytes()
    for place in range(0, len(whole), 9):
        flipped = bytearray(whole)
        flipped[place] ^= 0x55
        (folder / "flipped.npz").write_bytes(flipped)
        try:
            found = read_npz("flipped.npz")
        except UserError as error:
            assert "\n" not in str(error) and "flipped.npz" in str(error)
        else:
            assert np.array_equal(found.codes, CODES) and np.array_equal(found.factors, FACTORS), place


def test_labels_that_are_one_number_and_other_members_are_not_factors(folder, capsys):
    """(B-H9)"""
    np.savez("images.npz", images=IMAGES, labels=np.array(3))
    with zipfile.ZipFile("images.npz", "a") as archive:
        archive.writestr("notes.txt", "taken in May")
    assert not uw.load_data("images.npz").factor_names


# --- sweeps (B-H11) --------------------------------------------------------------------------------------------------


def test_a_product_that_is_too_large_is_refused_before_it_is_made(folder, capsys):
    """(B-H11)"""
    values = ",".join(map(str, range(1, 1001)))
    words = ["--set", f"beta={values}", "--set", f"latents={values}", "--seeds", "0-9999"]
    assert "10000000000" in refused(capsys, "train", "beta_vae", *TINY, *words)
    assert not list(folder.iterdir())


def test_the_settings_of_many_runs_are_compared_once_each(folder):
    """(B-H11)"""

    class Counted(float):
        compared = 0

        def __eq__(self, other):
            Counted.compared += 1
            return float(self) == float(other)

        def __ne__(self, other):
            Counted.compared += 1
            return float(self) != float(other)

        __hash__ = float.__hash__

    runs = [{"method": "vae", "data": "digits", "seed": seed, "lr": Counted(1), "steps": 0} for seed in range(200)]
    with raises("steps"):
        uw.fit(runs, out="sweep")
    assert Counted.compared < 1000 and not list(folder.iterdir())


# --- files that name other files (B-M7) ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["external storage", "external link", "soft link", "virtual", "labels"])
def test_an_hdf5_file_does_not_read_other_files(kind, folder, capsys):
    """(B-M7)"""
    labels = np.array([[a, 0, 0, 0, b, 0] for a in range(2) for b in range(4)], dtype=float)
    images = np.zeros((8, 64, 64, 3), np.uint8)
    (folder / "secret.bin").write_bytes(bytes(images.nbytes))
    with h5py.File("other.h5", "w") as file:
        file["images"], file["labels"] = images, labels
    with h5py.File("shapes.h5", "w") as file:
        if kind == "external storage":
            secret = [("secret.bin", 0, images.nbytes)]
            file.create_dataset("images", images.shape, images.dtype, external=secret)
        elif kind == "virtual":
            layout = h5py.VirtualLayout(images.shape, images.dtype)
            layout[:] = h5py.VirtualSource("other.h5", "images", images.shape)
            file.create_virtual_dataset("images", layout)
        elif kind == "soft link":
            file["outside"] = h5py.ExternalLink("other.h5", "/")
            file["images"] = h5py.SoftLink("/outside/images")
        elif kind == "external link":
            file["images"] = h5py.ExternalLink("other.h5", "images")
        else:
            file["images"] = images
        file["labels"] = h5py.ExternalLink("other.h5", "labels") if kind == "labels" else labels
    before = sorted(folder.iterdir())
    line = refused(capsys, "data", "inspect", "shapes3d(path='shapes.h5')")
    assert ("labels" if kind == "labels" else "images") in line and sorted(folder.iterdir()) == before


# --- outputs (B-M1, B-M2, B-M9) --------------------------------------------------------------------------------------


@pytest.fixture
def read_only(folder, trained):
    """A run in a folder that cannot be written."""
    shutil.copytree(trained, folder / "source" / "run")
    if os.geteuid() != 0:
        (folder / "source" / "run").chmod(0o555)
        yield folder / "source" / "run"
        (folder / "source" / "run").chmod(0o755)
        return
    (folder / "mounted").mkdir()  # permissions do not bind root, a file system does
    mount = ["mount", "--bind", "-o", "ro", folder / "source", folder / "mounted"]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs a file system that can be mounted")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder / "mounted"], check=True)
        yield folder / "mounted" / "run"
    finally:
        subprocess.run(["umount", folder / "mounted"], check=True)


def test_a_read_only_run_can_be_scored_elsewhere(read_only, folder, capsys):
    """(B-M1)"""
    code, _, err = unweave(capsys, "evaluate", read_only, "--metrics", "mig", "--out", "scores")
    assert code == 0 and err.count("warning: ") == 1 and err.count("\n") == 1, err
    assert (folder / "scores" / "scores.json").is_file() and (folder / "scores" / "heatmap.png").is_file()
    code, _, err = unweave(capsys, "compare", read_only, "--metrics", "mig", "--out", "table")
    assert code == 0 and err.count("warning: ") == 1, err
    assert (folder / "table" / "compare.html").is_file()
    assert "--out" in refused(capsys, "evaluate", read_only, "--metrics", "mig").replace("out must", "--out must")


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "folder"])
def test_an_output_that_is_not_a_regular_file_is_not_replaced(kind, trained, folder, capsys):
    """(B-M2)"""
    os.mkfifo("pipe")
    (folder / "folder").mkdir()
    (folder / "link to a pipe").symlink_to("pipe")
    before = {path.name: path.lstat().st_ino for path in folder.iterdir()}
    line = refused(capsys, "report", trained, "--out", kind)
    assert kind in line
    assert {path.name: path.lstat().st_ino for path in folder.iterdir()} == before


def test_an_output_that_is_a_link_is_written_through(trained, folder, capsys):
    """(B-M2)"""
    (folder / "pages").mkdir()
    (folder / "link.html").symlink_to("pages/page.html")
    assert unweave(capsys, "report", trained, "--out", "link.html")[0] == 0
    assert (folder / "link.html").is_symlink() and "<html" in (folder / "pages" / "page.html").read_text()
    assert [path.name for path in (folder / "pages").iterdir()] == ["page.html"]


def test_the_longest_name_of_a_file(trained, folder, capsys):
    """(B: Low)"""
    name = "n" * 250 + ".html"
    assert unweave(capsys, "report", trained, "--out", name)[0] == 0 and (folder / name).is_file()


@contextmanager
def full_disk(size):
    """Let every write beyond so many bytes of a file fail, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.filterwarnings("ignore::unweave.errors.UserNotice")
@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "{run}", "--metrics", "mig"],
        ["compare", "{run}", "--metrics", "mig"],
        ["data", "inspect", "digits"],
    ],
    ids=lambda words: words[0],
)
def test_a_full_disk_leaves_no_empty_folder_and_no_half_of_the_files(words, trained, folder, capsys):
    """(B-M9)"""
    shutil.copytree(trained, folder / "run")
    with full_disk(4000):  # scores.json and scores.csv are smaller, pictures and pages are larger
        line = refused(capsys, *(word.format(run="run") for word in words), "--out", "new/folder")
    assert "'new/folder" in line and "too large" in line
    assert {path.name for path in folder.iterdir()} == {"run"}
    assert not list((folder / "run").glob(".*.*.????????"))


def test_a_full_disk_during_training_names_the_file(folder, capsys):
    """(B-M9)"""
    with full_disk(1500):
        line = refused(capsys, "train", "beta_vae", *TINY, "--steps", "60", "--log-every", "1", "--out", "run")
    assert "'run" in line
