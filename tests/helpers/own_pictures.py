"""Folders of pictures of every kind, as people have them, made for the tests of one's own data."""

import csv
import random
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

KINDS = ("RGB", "L", "P", "RGBA", "LA", "I;16", "CMYK", "1", "gif", "webp", "bmp", "turned")


def drawn(width, height, shape="disc", colour=(200, 30, 90), radius=0.3, clear=False):
    """A disc or square in the middle, on light grey or on nothing."""
    picture = Image.new("RGBA", (width, height), (0, 0, 0, 0) if clear else (240, 240, 240, 255))
    reach = radius * min(width, height)
    box = (width / 2 - reach, height / 2 - reach, width / 2 + reach, height / 2 + reach)
    draw = ImageDraw.Draw(picture)
    (draw.ellipse if shape == "disc" else draw.rectangle)(box, fill=(*colour, 255))
    return picture


def saved(picture, path: Path, kind: str) -> Path:
    """The picture as a file of this kind; the ending is the file's own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind in ("RGBA", "LA"):
        picture.convert(kind).save(path := path.with_suffix(".png"))
    elif kind == "P":
        picture.convert("RGB").quantize(16).save(path := path.with_suffix(".png"))
    elif kind == "I;16":
        Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257).save(path := path.with_suffix(".png"))
    elif kind == "1":
        picture.convert("1", dither=Image.Dither.NONE).save(path := path.with_suffix(".tif"))
    elif kind == "gif":
        black = Image.new("RGB", picture.size)
        picture.convert("RGB").save(path := path.with_suffix(".gif"), save_all=True, append_images=[black])
    elif kind == "turned":
        notes = Image.Exif()
        notes[0x0112] = 6  # the camera lay on its side
        picture.convert("RGB").save(path := path.with_suffix(".jpg"), exif=notes)
    elif kind in ("webp", "bmp"):
        picture.convert("RGB").save(path := path.with_suffix(f".{kind}"))
    else:
        picture.convert(kind).save(path := path.with_suffix(".jpg" if kind == "CMYK" else ".png"))
    return path


def mixed_folder(root: Path, count: int, seed: int = 0) -> Path:
    """`count` good pictures in nested folders, a broken one, a text; beside them a table with gaps. Returns the table.

    The table lacks the last two pictures, has a row for a picture that is not there and one for the broken one.
    """
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        width, height, radius = rng.randint(20, 90), rng.randint(20, 90), rng.uniform(0.15, 0.4)
        shape, colour = rng.choice(["disc", "square"]), tuple(rng.randrange(256) for _ in range(3))
        kind, place = KINDS[number % len(KINDS)], ("a", "b", "c/deep")[number % 3]
        picture = drawn(width, height, shape, colour, radius, clear=kind in ("RGBA", "LA"))
        path = saved(picture, root / place / f"picture{number:04d}", kind)
        stars = rng.randint(1, 5) if rng.random() > 0.1 else ""
        light = f"{sum(colour) / 765:.3f}" if rng.random() > 0.1 else ""
        rows.append([path.relative_to(root).as_posix(), shape, f"{radius:.4f}", light, stars, "same", f"note {number}"])
    (root / "a" / "broken.png").write_bytes((root / rows[0][0]).read_bytes()[:60])
    (root / "notes.txt").write_text("not a picture")
    (root / ".hidden.png").write_text("left behind by a system")
    table = root.parent / f"{root.name}.csv"
    extra = [["gone.png", "disc", "0.2", "0.1", 1, "same", "x"], ["a/broken.png", "disc", "0.2", "0.1", 1, "same", "y"]]
    with open(table, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "shape", "radius", "light", "stars", "version", "remark"])
        writer.writerows(rows[:-2] + extra)
    return table
