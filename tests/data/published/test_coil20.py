import io
import zipfile

import numpy as np
import torch
from PIL import Image

from unweave.data import load_data


def png(image):
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    return buffer.getvalue()


def write(path, made):
    with zipfile.ZipFile(path, "w") as archive:
        for (thing, pose), image in made.items():
            archive.writestr(f"coil-20-proc/obj{thing}__{pose}.png", png(image))


def things(count=2, poses=12):
    random = np.random.default_rng(0)
    return {
        (t, p): random.integers(0, 256, (128, 128), dtype=np.uint8) for t in range(1, count + 1) for p in range(poses)
    }


def test_read_as_written(tmp_path, own_cache, well_formed):
    made = things()
    write(tmp_path / "coil-20-proc.zip", dict(reversed(made.items())))
    data = well_formed(load_data("coil20", path=tmp_path))
    assert data.grid and data.factor_names == ("object", "pose") and data.factor_sizes == (2, 12)
    assert data.factor_values[1] == tuple(5.0 * p for p in range(12))  # 10 comes after 9, not after 1
    small = Image.fromarray(made[2, 10]).resize((64, 64), Image.Resampling.LANCZOS)
    found = data.images(data.index(torch.tensor([[1, 10]])))
    assert np.array_equal((found[0, 0] * 255).round().byte(), small)


def test_damaged_and_mislabelled_files_are_refused(tmp_path, own_cache, refused):
    made = things()
    folder = tmp_path / "coil-20-proc"
    folder.mkdir()
    refused("no pictures named like", "coil20", path=folder)
    for (thing, pose), image in made.items():
        (folder / f"obj{thing}__{pose}.png").write_bytes(png(image))
    (folder / "obj2__5.png").write_bytes(png(made[2, 5])[:-200])
    refused("obj2__5.png cannot be read", "coil20", path=folder)
    (folder / "obj2__5.png").unlink()
    refused("its 23 rows are not every combination", "coil20", path=folder)


def test_real_photographs(tmp_path, own_cache, reference):
    """The 1440 real pictures, at hand in 32 x 32 only, enlarged to the published size."""
    with np.load(reference("coil20_32.npz")) as stored:
        images, thing, pose = stored["images"], stored["object"].tolist(), stored["pose"].tolist()
    large = images.repeat(4, axis=1).repeat(4, axis=2)
    write(tmp_path / "c.zip", {(t + 1, p): image for t, p, image in zip(thing, pose, large, strict=True)})
    data = load_data("coil20", path=tmp_path / "c.zip", size=128)
    assert data.size == 1440 and data.factor_sizes == (20, 72)
    assert np.array_equal(data.pixels, large)
