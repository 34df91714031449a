import numpy as np
import pytest
import torch
from PIL import Image
from published_files import CARS, car_files, car_images, matlab, save_files, write_cars3d

from unweave.data import load_data


def test_files_are_read(tmp_path, own_cache):
    cars = write_cars3d(tmp_path)
    data = load_data("cars3d", path=tmp_path / "nips2015-analogy-data.tar.gz", size=16)
    assert data.grid and data.factor_sizes == (4, 24, 3) and data.factor_names == ("elevation", "azimuth", "object")
    assert data.factor_values[2] == CARS
    for row in ([0, 0, 0], [3, 23, 2], [2, 7, 1]):
        x = (data.images(data.index(torch.tensor([row])))[0] * 255).round().byte()
        elevation, azimuth, car = row
        assert np.array_equal(x.permute(1, 2, 0), cars[CARS[car]][..., azimuth, elevation])


def test_folders_and_size(tmp_path, own_cache):
    cars = car_images(128, azimuths=2, elevations=2)
    save_files(tmp_path, car_files(cars))
    data = load_data("cars3d", path=tmp_path / "data")
    assert data.shape == (3, 64, 64) and data.factor_sizes == (2, 2, 3)
    view = Image.fromarray(np.ascontiguousarray(cars["car_001_mesh"][..., 1, 0]))
    x = data.images(data.index(torch.tensor([[0, 1, 1]])))
    small = np.asarray(view.resize((64, 64), Image.Resampling.LANCZOS))
    assert np.array_equal((x[0] * 255).round().byte().permute(1, 2, 0), small)
    inner = load_data("cars3d", path=tmp_path / "data" / "cars")
    assert torch.equal(inner.pixels, data.pixels)


CAR, LIST = "data/cars/car_001_mesh.mat", "data/cars/list.txt"


@pytest.mark.parametrize(
    "name, content, fact",
    [
        (CAR, None, "3 cars, of which 1"),
        (LIST, None, "list.txt"),
        (LIST, b"", "0 cars"),
        (CAR, lambda content: content[: len(content) // 2], "car_001_mesh.mat"),
        (CAR, b"hello", "car_001_mesh.mat"),
        (CAR, matlab(other=np.zeros(3)), "car_001_mesh.mat"),
        (CAR, matlab(im=np.zeros((16, 16, 3, 24), np.uint8)), "(16, 16, 3, 24)"),
        (CAR, matlab(im=np.zeros((16, 16, 3, 23, 4), np.uint8)), "(4, 23, 64, 64, 3)"),
    ],
    ids=["no car", "no list", "empty list", "truncated", "text", "another array", "four axes", "another size"],
)
def test_invalid_files_are_refused(tmp_path, own_cache, refused, name, content, fact):
    files = car_files(car_images())
    files[name] = content(files[name]) if callable(content) else content
    save_files(tmp_path, {name: content for name, content in files.items() if content is not None})
    refused(fact, "cars3d", path=tmp_path / "data")


def test_a_truncated_archive_is_refused(tmp_path, own_cache, refused):
    write_cars3d(tmp_path)
    path = tmp_path / "nips2015-analogy-data.tar.gz"
    path.write_bytes(path.read_bytes()[:-5000])
    refused("damaged", "cars3d", path=path)
