import zipfile

import numpy as np
import torch
from PIL import Image

from unweave.data import load_data

ROWS = [(1, 0, 0), (1, -130, 20), (2, 0, 0), (2, 70, -35), (39, 0, 90), (39, -130, 20)]


def pgm(image):
    """Binary portable grey map."""
    return b"P5\n%d %d\n255\n" % image.shape[::-1] + image.tobytes()


def name(subject, azimuth, elevation):
    return f"CroppedYale/yaleB{subject:02}/yaleB{subject:02}_P00A{azimuth:+04}E{elevation:+03}.pgm"


def faces():
    random = np.random.default_rng(0)
    return {row: random.integers(0, 256, (192, 168), dtype=np.uint8) for row in ROWS}


def write(folder, made):
    """With what lies beside the pictures: notes, ambient scenes, spoilt exposures, a Mac's shadow files."""
    others = {
        "CroppedYale/yaleB01/yaleB01_P00.info": b"yaleB01_P00A+000E+00.pgm\n",
        "CroppedYale/yaleB01/yaleB01_P00_Ambient.pgm": pgm(np.zeros((480, 640), np.uint8)),
        "CroppedYale/yaleB11/yaleB11_P00A+050E-40.pgm.bad": b"",
        "__MACOSX/CroppedYale/yaleB01/._yaleB01_P00A+000E+00.pgm": b"junk",
    }
    with zipfile.ZipFile(folder / "CroppedYale.zip", "w") as archive:
        for file, content in {**{name(*row): pgm(face) for row, face in made.items()}, **others}.items():
            archive.writestr(file, content)


def test_read_as_written(tmp_path, own_cache, well_formed):
    made = faces()
    write(tmp_path, made)
    data = well_formed(load_data("extended_yale_b", path=tmp_path))
    assert data.size == 6 and data.shape == (1, 64, 64) and not data.grid
    assert data.factor_names == ("subject", "azimuth", "elevation")
    assert data.factor_values == ((1, 2, 39), (-130, 0, 70), (-35, 0, 20, 90))
    for index, row in enumerate(sorted(ROWS)):
        values = [v[c] for v, c in zip(data.factor_values, data.factors(torch.tensor([index]))[0], strict=True)]
        assert tuple(values) == row
        small = Image.fromarray(made[row]).resize((64, 64), Image.Resampling.LANCZOS)
        assert np.array_equal((data.images(torch.tensor([index]))[0, 0] * 255).round().byte(), small)


def test_its_folder_will_do(tmp_path, own_cache):
    write(tmp_path, faces())
    with zipfile.ZipFile(tmp_path / "CroppedYale.zip") as archive:
        archive.extractall(tmp_path / "out")
    packed = load_data("extended_yale_b", path=tmp_path / "CroppedYale.zip")
    for folder in ("out", "out/CroppedYale"):
        assert torch.equal(load_data("extended_yale_b", path=tmp_path / folder).pixels, packed.pixels)


def test_damaged_files_are_refused(tmp_path, own_cache, refused):
    folder = tmp_path / "CroppedYale" / "yaleB01"
    folder.mkdir(parents=True)
    refused("no pictures named like", "extended_yale_b", path=tmp_path / "CroppedYale")
    whole = pgm(faces()[1, 0, 0])
    for content in (whole[:-100], b"P5\n168 ", b"hello", b""):
        (folder / "yaleB01_P00A+000E+00.pgm").write_bytes(content)
        refused("yaleB01_P00A.000E.00.pgm cannot be read", "extended_yale_b", path=tmp_path / "CroppedYale")
    write(tmp_path, faces())
    packed = tmp_path / "CroppedYale.zip"
    packed.write_bytes(packed.read_bytes()[:-100])
    refused("damaged", "extended_yale_b", path=packed)


def test_real_faces(tmp_path, own_cache, reference):
    """The 2414 real pictures, at hand in 64 x 64 only, brought back to the published size and format."""
    with np.load(reference("extended_yale_b_64.npz")) as stored:
        images, table = stored["images"], np.stack([stored[k] for k in ("subject", "azimuth_deg", "elevation_deg")], 1)
    large = [np.asarray(Image.fromarray(i).resize((168, 192), Image.Resampling.BICUBIC)) for i in images]
    write(tmp_path, {tuple(row): face for row, face in zip(table.tolist(), large, strict=True)})
    data = load_data("extended_yale_b", path=tmp_path / "CroppedYale.zip")
    assert data.size == 2414 and data.factor_sizes[0] == 38
    order = np.lexsort(table.T[::-1])
    assert (data.pixels.float() - torch.from_numpy(images[order]).float()).abs().mean() < 1.0
    lights = data.factors(torch.arange(2414))[:, 1:].unique(dim=0)
    assert len(lights) == 64
