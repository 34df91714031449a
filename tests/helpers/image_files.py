"""Image files of many formats, and a folder of them with a table of factors."""

import csv
import random
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

FORMATS = ("RGB", "L", "P", "RGBA", "LA", "I;16", "CMYK", "1", "gif", "webp", "bmp", "rotated")


def draw_image(width, height, shape="disc", colour=(200, 30, 90), radius=0.3, transparent=False):
    """Draw a disc or square in the middle, on light grey or on a transparent background."""
    image = Image.new("RGBA", (width, height), (0, 0, 0, 0) if transparent else (240, 240, 240, 255))
    reach = radius * min(width, height)
    box = (width / 2 - reach, height / 2 - reach, width / 2 + reach, height / 2 + reach)
    draw = ImageDraw.Draw(image)
    (draw.ellipse if shape == "disc" else draw.rectangle)(box, fill=(*colour, 255))
    return image


def save_image(image, path: Path, format: str) -> Path:
    """Save an image in this format, with its ending; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if format in ("RGBA", "LA"):
        image.convert(format).save(path := path.with_suffix(".png"))
    elif format == "P":
        image.convert("RGB").quantize(16).save(path := path.with_suffix(".png"))
    elif format == "I;16":
        Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257).save(path := path.with_suffix(".png"))
    elif format == "1":
        image.convert("1", dither=Image.Dither.NONE).save(path := path.with_suffix(".tif"))
    elif format == "gif":
        black = Image.new("RGB", image.size)
        image.convert("RGB").save(path := path.with_suffix(".gif"), save_all=True, append_images=[black])
    elif format == "rotated":
        notes = Image.Exif()
        notes[0x0112] = 6  # rotated camera
        image.convert("RGB").save(path := path.with_suffix(".jpg"), exif=notes)
    elif format in ("webp", "bmp"):
        image.convert("RGB").save(path := path.with_suffix(f".{format}"))
    else:
        image.convert(format).save(path := path.with_suffix(".jpg" if format == "CMYK" else ".png"))
    return path


def mixed_folder(root: Path, count: int, seed: int = 0) -> Path:
    """Write `count` images in nested folders, a damaged one, and a text; return a table with missing values.

    The table has no rows for the last two images, and rows for a missing image and for the damaged one.
    """
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        width, height, radius = rng.randint(20, 90), rng.randint(20, 90), rng.uniform(0.15, 0.4)
        shape, colour = rng.choice(["disc", "square"]), tuple(rng.randrange(256) for _ in range(3))
        format, place = FORMATS[number % len(FORMATS)], ("a", "b", "c/deep")[number % 3]
        image = draw_image(width, height, shape, colour, radius, transparent=format in ("RGBA", "LA"))
        path = save_image(image, root / place / f"picture{number:04d}", format)
        stars = rng.randint(1, 5) if rng.random() > 0.1 else ""
        light = f"{sum(colour) / 765:.3f}" if rng.random() > 0.1 else ""
        rows.append([path.relative_to(root).as_posix(), shape, f"{radius:.4f}", light, stars, "same", f"note {number}"])
    (root / "a" / "broken.png").write_bytes((root / rows[0][0]).read_bytes()[:60])
    (root / "notes.txt").write_text("not an image")
    (root / ".hidden.png").write_text("a file of the system")
    table = root.parent / f"{root.name}.csv"
    extra = [["gone.png", "disc", "0.2", "0.1", 1, "same", "x"], ["a/broken.png", "disc", "0.2", "0.1", 1, "same", "y"]]
    with open(table, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["image", "shape", "radius", "light", "stars", "version", "remark"])
        writer.writerows(rows[:-2] + extra)
    return table
