import io
import tarfile

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from unweave.data import load_data

LISTED = ("car_003_mesh", "car_001_mesh", "car_199_mesh")  # the list's order, not the alphabet's


def cars(side=16, azimuths=24, elevations=4):
    random = np.random.default_rng(0)
    return {name: random.integers(0, 256, (side, side, 3, azimuths, elevations), dtype=np.uint8) for name in LISTED}


def contents(made):
    """The files of the archive, each car a version 5 MATLAB file with `im` and `mask`."""
    files = {"data/cars/list.txt": "".join(f"{name}\n" for name in LISTED).encode(), "data/shapes48.mat": b"other"}
    for name in sorted(made):
        buffer = io.BytesIO()
        savemat(buffer, {"im": made[name], "mask": made[name][:, :, 0] > 0}, format="5", do_compression=True)
        files[f"data/cars/{name}.mat"] = buffer.getvalue()
    return files


def write_archive(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))


def write_folder(path, files):
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)


def test_read_as_written(tmp_path, own_cache, well_formed):
    made = cars()
    write_archive(tmp_path / "nips2015-analogy-data.tar.gz", contents(made))
    data = well_formed(load_data("cars3d", path=tmp_path / "nips2015-analogy-data.tar.gz", size=16))
    assert data.grid and data.factor_sizes == (4, 24, 3) and data.factor_names == ("elevation", "azimuth", "object")
    assert data.factor_values[2] == LISTED
    for row in ([0, 0, 0], [3, 23, 2], [2, 7, 1]):
        found = (data.images(data.index(torch.tensor([row])))[0] * 255).round().byte()
        elevation, azimuth, thing = row
        assert np.array_equal(found.permute(1, 2, 0), made[LISTED[thing]][..., azimuth, elevation])


def test_folders_and_size(tmp_path, own_cache, well_formed):
    made = cars(128, azimuths=2, elevations=2)
    write_folder(tmp_path, contents(made))
    data = well_formed(load_data("cars3d", path=tmp_path / "data"))
    assert data.shape == (3, 64, 64) and data.factor_sizes == (2, 2, 3)
    view = Image.fromarray(np.ascontiguousarray(made["car_001_mesh"][..., 1, 0]))
    found = data.images(data.index(torch.tensor([[0, 1, 1]])))
    smaller = np.asarray(view.resize((64, 64), Image.Resampling.LANCZOS))
    assert np.array_equal((found[0] * 255).round().byte().permute(1, 2, 0), smaller)
    inner = load_data("cars3d", path=tmp_path / "data" / "cars")
    assert torch.equal(inner.pixels, data.pixels)


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("data/cars/car_001_mesh.mat", None, "names 3 cars, of which 1 are missing"),
        ("data/cars/list.txt", None, "no cars/list.txt"),
        ("data/cars/list.txt", b"", "names 0 cars"),
        ("data/cars/car_001_mesh.mat", lambda c: c[: len(c) // 2], "car_001_mesh.mat"),
        ("data/cars/car_001_mesh.mat", lambda c: b"hello", "car_001_mesh.mat is no MATLAB file"),
        ("data/cars/car_001_mesh.mat", {"other": np.zeros(3)}, "car_001_mesh.mat is no MATLAB file"),
        ("data/cars/car_001_mesh.mat", {"im": np.zeros((16, 16, 3, 24), np.uint8)}, "not bytes"),
        ("data/cars/car_001_mesh.mat", {"im": np.zeros((16, 16, 3, 23, 4), np.uint8)}, "different numbers"),
    ],
)
def test_damaged_and_mislabelled_files_are_refused(tmp_path, own_cache, refused, name, content, said):
    files = contents(cars())
    if content is None:
        del files[name]
    elif isinstance(content, dict):
        buffer = io.BytesIO()
        savemat(buffer, content)
        files[name] = buffer.getvalue()
    else:
        files[name] = content(files[name]) if callable(content) else content
    write_folder(tmp_path, files)
    refused(said, "cars3d", path=tmp_path / "data")


def test_a_cut_off_archive_is_refused(tmp_path, own_cache, refused):
    path = tmp_path / "a.tar.gz"
    write_archive(path, contents(cars()))
    path.write_bytes(path.read_bytes()[:-5000])
    refused("damaged", "cars3d", path=path)
