"""A run, its stored codes and its scores belong to the data they were made of; other data are noticed."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import unweave as uw
from unweave.data import Dataset
from unweave.data.views import subset

TINY = {"steps": 4, "batch": 4, "net": "small", "latents": 2, "device": "cpu", "log_every": 2, "checkpoint_every": 2}
MNIST = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The current folder, with a cache of its own."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Stop(Exception):
    pass


def interrupted(data, out, method="vae", **options):
    """Train until the first checkpoint."""

    def stop(record):
        raise Stop

    with pytest.raises(Stop), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about the data
        uw.train(method, data, out=out, observe=stop, **{**TINY, **options})
    return Path(out)


def images(count=40, seed=0, channels=1):
    return np.random.default_rng(seed).integers(0, 256, (count, channels, 16, 16), dtype=np.uint8)


def labels(count=40, seed=0):
    return np.random.default_rng(seed).integers(0, 4, (count, 2))


def one_pixel_changed(array):
    """Return a copy in which one pixel of one image has another value."""
    changed = array.copy()
    changed[len(array) // 3 + 1, 0, 7, 7] ^= 0x80
    return changed


def most_labels_changed(table):
    """Return other labels except for 16 evenly spread observations, which are all that older versions compared."""
    changed, kept = (table + 1 + np.arange(len(table))[:, None] % 3) % 4, np.linspace(0, len(table) - 1, 16).astype(int)
    changed[kept] = table[kept]
    return changed


def write_folder(array, root="photos"):
    Path(root).mkdir(exist_ok=True)
    for number, image in enumerate(array):
        Image.fromarray(image[0]).save(f"{root}/{number:03}.bmp")  # files of equal size
    return root


def write_mnist(array, root="mnist"):
    """Write files like those of MNIST."""
    Path(root).mkdir(exist_ok=True)
    large = np.zeros((len(array), 28, 28), np.uint8)
    large[:, 6:22, 6:22] = array[:, 0]
    for part, rows in (("0", slice(None)), ("2", slice(4))):
        content, digits = large[rows], (np.arange(len(large)) % 10).astype(np.uint8)[rows]
        header = len(content).to_bytes(4, "big") + (28).to_bytes(4, "big") * 2
        Path(root, MNIST[int(part)]).write_bytes(bytes([0, 0, 8, 3]) + header + content.tobytes())
        Path(root, MNIST[int(part) + 1]).write_bytes(bytes([0, 0, 8, 1]) + header[:4] + digits.tobytes())
    return f"mnist(path={root!r}, size=16)"


def write_array(array):
    np.save("images.npy", array)
    return "images.npy"


def write_archive(array):
    np.savez("images.npz", images=array, labels=labels())
    return "images.npz"


class Rendered(Dataset):
    """A data set class of a user."""

    name, factor_names, factor_sizes, options, grid = "rendered", (), (), {}, False

    def __init__(self, array):
        super().__init__()
        self.size, self.shape = len(array), array.shape[1:]
        self.register_buffer("stored", torch.from_numpy(array), persistent=False)

    def images(self, index_B):
        return self.stored[index_B] / 255.0


FILES = {
    "folder": write_folder,
    "array file": write_array,
    "archive": write_archive,
    "published files": write_mnist,
    "view of a folder": lambda array: f"split(data=\"folder(path='{write_folder(array)}', size=16)\", fraction=0.95)",
    "view of published files": lambda array: f"subset(data={write_mnist(array)!r}, first=40)",
}
OBJECTS = {
    "arrays": uw.load_data,
    "items": lambda array: uw.load_data([(image, 0) for image in array]),
    "view of arrays": lambda array: subset(uw.load_data(array), first=len(array)),
    "class of a user": Rendered,
}


@pytest.mark.parametrize("kind", FILES)
def test_changed_files_are_noticed_when_a_run_is_resumed_or_used(kind, place):
    """Files are replaced by others of equal number, size and times. (A8, B-C4)"""
    run = interrupted(FILES[kind](images()), "run")
    log, files = (run / "log.jsonl").read_text(), sorted(path.name for path in run.iterdir())
    times = {path: path.stat() for path in place.rglob("*") if path.is_file() and "cache" not in path.parts}
    FILES[kind](one_pixel_changed(images()))
    for path, stat in times.items():
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    uses = {
        "resume": lambda: uw.resume(run),
        "load": lambda: uw.load(run),
        "evaluate": lambda: uw.evaluate(run, metrics=["active_dimensions"]),
        "compare": lambda: uw.score_runs([run], metrics=["active_dimensions"]),
    }
    for name, use in uses.items():
        with pytest.raises(uw.UserError) as refused:
            use()
        assert "\n" not in str(refused.value), name
    assert (run / "log.jsonl").read_text() == log and sorted(path.name for path in run.iterdir()) == files
    FILES[kind](images())  # new files with the old content
    assert uw.resume(run).folder.finished


@pytest.mark.parametrize("kind", OBJECTS)
def test_a_run_continues_on_its_own_data_objects_only(kind):
    """Data given as objects have no path; an object with equal content is the same data. (A8)"""
    run, log = interrupted(OBJECTS[kind](images()), "run"), Path("run/log.jsonl").read_text()
    for other in (one_pixel_changed(images()), images(30)):
        with pytest.raises(uw.UserError) as refused:
            uw.resume(run, data=OBJECTS[kind](other))
        assert "images" in str(refused.value) and ("40" in str(refused.value)) == (len(other) == 30)
    assert Path("run/log.jsonl").read_text() == log
    assert uw.resume(run, data=OBJECTS[kind](images())).folder.finished


def test_the_error_names_what_changed_and_how_to_use_other_data():
    run = interrupted(write_folder(images()), "run")
    write_folder(one_pixel_changed(images()))
    for use, hint in ((uw.resume, False), (uw.load, True), (uw.evaluate, True)):
        with pytest.raises(uw.UserError) as refused:
            use(run)
        assert "images" in str(refused.value) and "factors" not in str(refused.value)
        assert ("data=" in str(refused.value)) == hint


def test_published_files_with_fewer_images(capfd):
    """The files of an interrupted run were replaced by some with fewer images. (A8)"""
    run = interrupted(write_mnist(images(60)), "run")
    write_mnist(images(40))
    with pytest.raises(uw.UserError) as refused:
        uw.resume(run)
    assert "64" in str(refused.value) and "44" in str(refused.value)
    code, _, err = command(capfd, "train", "--resume", run)
    assert code == 2 and err.count("\n") == 1 and "64" in err and "44" in err


def command(capfd, *words):
    """Run a command; return its exit code and what it printed."""
    from unweave.cli import app

    argv, sys.argv = sys.argv, ["unweave", *map(str, words)]
    try:
        with pytest.raises(SystemExit) as stop:
            app.main()
    finally:
        sys.argv = argv
    return stop.value.code or 0, *capfd.readouterr()


def test_a_sweep_continues_on_its_own_data_only():
    """`fit(resume=True)` and `resume_all` compare the data too, for finished runs as well. (A8)"""
    runs = [{"method": "vae", "seed": seed, **TINY} for seed in (0, 1)]
    data, other = uw.load_data(images()), uw.load_data(one_pixel_changed(images()))
    uw.fit([{**run, "data": data} for run in runs], out="sweep")
    with pytest.raises(uw.UserError, match="images"):
        uw.fit([{**run, "data": other} for run in runs], out="sweep", resume=True)
    uw.fit([{**run, "data": write_folder(images())} for run in runs], out="files")
    write_folder(one_pixel_changed(images()))
    from unweave.training.sweep import resume_all

    with pytest.raises(uw.UserError, match="images"):
        resume_all(sorted(Path("files").glob("*seed*")))


def test_scores_are_those_of_the_given_factors_and_images():
    """Factors and images in memory change between two evaluations of one run. (A3)"""
    first, second = (uw.load_data(images(), factors=table) for table in (labels(), most_labels_changed(labels())))
    third = uw.load_data(one_pixel_changed(images()), factors=labels())
    run = Path(uw.train("vae", first, out="run", **TINY).folder.path)
    for data in (first, second, third, first):
        given = uw.load(run, data=data)
        codes = given.encode(data.images(torch.arange(data.size)))
        truth = uw.evaluate_arrays(codes, data.factors(torch.arange(data.size)), metrics=["mig", "sap"]).scores
        assert uw.evaluate(given, data, metrics=["mig"]).scores["mig"] == pytest.approx(truth["mig"], abs=1e-9)
        stored = uw.score_runs([given], metrics=["mig"], stored=True)["mig"][0]
        assert stored == pytest.approx(truth["mig"], abs=1e-9)
    for data in (first, second, third):
        uw.evaluate(uw.load(run, data=data), metrics=["mig"])
        assert json.loads((run / "scores.json").read_text())["data_digest"] == data.digest
    assert len({data.digest for data in (first, second, third)}) == 3


def test_runs_on_different_arrays_are_scored_on_their_own():
    """Two runs on arrays of equal shape are compared; neither is encoded on the data of the other. (A3)"""
    arrays = [images(), one_pixel_changed(images())]
    data = [uw.load_data(array, factors=labels()) for array in arrays]
    runs = [uw.train("vae", given, out=f"run{k}", **TINY) for k, given in enumerate(data)]
    alone = [uw.evaluate(run, metrics=["mig"], save=False).scores["mig"] for run in runs]
    frame = uw.score_runs(runs, metrics=["mig"])
    assert frame["mig"].tolist() == pytest.approx(alone)


def test_changed_factors_are_noticed():
    """A corrected label in the table of a folder, and in an array given again. (A8)"""
    write_folder(images())
    table = "\n".join(["file,kind", *(f"{k:03}.bmp,{'abcd'[k % 4]}" for k in range(40))])
    Path("table.csv").write_text(table)
    run = interrupted("folder(path='photos', size=16, factors='table.csv')", "run")
    Path("table.csv").write_text(table.replace("020.bmp,a", "020.bmp,b"))
    with pytest.raises(uw.UserError, match="factors") as refused:
        uw.resume(run)
    assert "table.csv" in str(refused.value) and "images" not in str(refused.value)
    changed = labels()
    changed[21, 1] = (changed[21, 1] + 1) % 4
    run = interrupted(uw.load_data(images(), factors=labels()), "other")
    with pytest.raises(uw.UserError, match="factors"):
        uw.resume(run, data=uw.load_data(images(), factors=changed))


def test_a_change_anywhere_in_a_large_file():
    """One image of an array file of 132 MB is changed in place, and the time of the file is restored. (B-C4)"""
    array = np.lib.format.open_memmap("large.npy", "w+", np.uint8, (33_000, 1, 64, 64))  # a sparse file
    array[0] = 200
    array.flush()
    del array
    stat = os.stat("large.npy")
    run = interrupted("large.npy", "run")
    with open("large.npy", "r+b") as file:
        file.seek(128 + 4096 * 370 + 9)  # between the blocks of 1 MB that older versions compared
        file.write(b"\xff")
    os.utime("large.npy", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(uw.UserError, match="images"):
        uw.resume(run)


@pytest.mark.parametrize("replace", [False, True])
def test_a_file_of_a_folder_is_edited_with_its_time_preserved(replace):
    """As `cp -p` and `rsync -t` do: the cached pixels of the folder are not used. (B-C4)"""
    root = Path(write_folder(images()))
    before = uw.load_data(str(root), size=16)
    first = before.images(torch.arange(40)).clone()
    edited, stat = root / "007.bmp", (root / "007.bmp").stat()
    target = root / ".new" if replace else edited
    Image.fromarray(255 - images()[7, 0]).save(target, "BMP")
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    os.replace(target, edited)
    after = uw.load_data(str(root), size=16).images(torch.arange(40))
    assert not torch.equal(after[7], first[7]) and torch.equal(after[8], first[8])


def test_other_data_are_used_if_they_are_given():
    """Data given by the user may differ; the scores say on which data they were computed. (A8)"""
    run = Path(uw.train("vae", write_folder(images()), out="run", **TINY).folder.path)
    config = json.loads((run / "config.json").read_text())
    other = uw.load_data(write_folder(one_pixel_changed(images())))
    result = uw.evaluate(run, other, metrics=["active_dimensions"])
    stored = json.loads((run / "scores.json").read_text())["data_digest"]
    assert result.data_digest == stored == other.digest != config["data_digest"]
    assert uw.load(run, data=other).data is other


def test_a_run_without_a_digest_is_resumed_with_one_line():
    """As the runs of older versions; number and shape are compared. (A8)"""
    run = interrupted(write_mnist(images()), "run")
    config = json.loads((run / "config.json").read_text())
    config.pop("data_digest", None)
    (run / "config.json").write_text(json.dumps(config))
    write_mnist(images(30))
    with pytest.raises(uw.UserError, match="images") as refused:
        uw.resume(run)
    assert "44" in str(refused.value) and "34" in str(refused.value)
    write_mnist(images())
    with pytest.warns(UserWarning, match="digest") as notices:
        uw.resume(run)
    assert len(notices) == 1 and "\n" not in str(notices[0].message)


CONVERT = """
import sys, time
from pathlib import Path
import numpy as np
from unweave.data import load_data

save = np.save
def slow(path, array):
    save(path, array)
    print("converted", flush=True)
    for _ in range(30):  # until the other process has published its store, or waits for this one
        if list(Path("cache/files").glob("mnist-*")):
            break
        time.sleep(0.01)
np.save = slow
load_data("mnist(path='mnist', size=16)")
"""


def test_two_processes_convert_the_same_files():
    """The arrays that one process has published and mapped are not deleted by the other. (A18)"""
    text = write_mnist(images())
    with subprocess.Popen([sys.executable, "-c", CONVERT], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "converted\n"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it waits
            uw.load_data(text)
        store = next(Path("cache/files").glob("mnist-*"))
        inode = store.stat().st_ino
        assert other.wait(timeout=60) == 0
    assert store.stat().st_ino == inode and [path.name for path in store.parent.iterdir()] == [store.name]
