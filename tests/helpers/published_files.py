"""Small files in the formats of the published data sets.

Each `write_<name>(folder)` writes files that `load_data("<name>", path=folder)` reads, and returns their content.
"""

import gzip
import io
import itertools
import pickle
import struct
import tarfile
import wave
import zipfile

import h5py
import numpy as np
from PIL import Image
from scipy.io import savemat


def random_bytes(*shape, seed=0):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def grid(sizes):
    """Factor classes of all combinations, the last factor varying fastest."""
    return np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), axis=1)


def encode(array, format="PNG", **options):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, format, **options)
    return buffer.getvalue()


def zip_files(path, files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def save_files(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


# --- cars3d --------------------------------------------------------------------------------------------------------

CARS = ("car_003_mesh", "car_001_mesh", "car_199_mesh")  # in the order of list.txt


def car_images(side=16, azimuths=24, elevations=4):
    return {name: random_bytes(side, side, 3, azimuths, elevations, seed=i) for i, name in enumerate(CARS)}


def matlab(**arrays):
    buffer = io.BytesIO()
    savemat(buffer, arrays, format="5", do_compression=True)
    return buffer.getvalue()


def car_files(cars):
    files = {"data/cars/list.txt": "".join(f"{name}\n" for name in CARS).encode(), "data/shapes48.mat": b"other"}
    masked = {name: matlab(im=cars[name], mask=cars[name][:, :, 0] > 0) for name in sorted(cars)}
    return files | {f"data/cars/{name}.mat": content for name, content in masked.items()}


def write_cars3d(folder, cars=None):
    cars = car_images() if cars is None else cars
    with tarfile.open(folder / "nips2015-analogy-data.tar.gz", "w:gz") as archive:
        for name, content in car_files(cars).items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return cars


# --- celeba --------------------------------------------------------------------------------------------------------

CELEBA_NAMES = ("5_o_Clock_Shadow", "Bald", "Smiling", "Young")
CELEBA_SIGNS = np.random.default_rng(1).choice([-1, 1], (7, len(CELEBA_NAMES)))
CELEBA_PARTS = (0, 0, 0, 1, 1, 2, 0)


def write_celeba(folder, zipped=False):
    """Smooth images of 178 x 218, a table of attributes with aligned columns, and a list of parts."""
    small = [Image.fromarray(random_bytes(4, 4, 3, seed=i)) for i in range(7)]
    smooth = [np.asarray(image.resize((178, 218), Image.Resampling.BICUBIC)) for image in small]
    files = {f"{i + 1:06}.jpg": encode(image, "JPEG", quality=95) for i, image in enumerate(smooth)}
    rows = [f"{file} " + " ".join(f"{sign:2}" for sign in row) for file, row in zip(files, CELEBA_SIGNS, strict=True)]
    (folder / "list_attr_celeba.txt").write_text(f"7\n{' '.join(CELEBA_NAMES)} \n" + "\n".join(rows) + "\n")
    parts = "".join(f"{file} {part}\n" for file, part in zip(files, CELEBA_PARTS, strict=True))
    (folder / "list_eval_partition.txt").write_text(parts)
    inside = {f"img_align_celeba/{file}": content for file, content in files.items()}
    zip_files(folder / "img_align_celeba.zip", inside) if zipped else save_files(folder, inside)
    return files


# --- coil20 --------------------------------------------------------------------------------------------------------


def coil20_images(objects=2, poses=12):
    images = random_bytes(objects, poses, 128, 128)
    return {(o + 1, p): images[o, p] for o in range(objects) for p in range(poses)}


def coil20_files(images):
    return {f"coil-20-proc/obj{o}__{p}.png": encode(image) for (o, p), image in images.items()}


def write_coil20(folder, images=None):
    images = coil20_images() if images is None else images
    zip_files(folder / "coil-20-proc.zip", coil20_files(images))
    return images


# --- dsprites ------------------------------------------------------------------------------------------------------

DSPRITES_SIZES = (1, 3, 2, 4, 3, 5)


class NotUnpickled:
    """Unpickling this raises an error."""

    def __reduce__(self):
        return exec, ("raise AssertionError('unpickled')",)


def dsprites_arrays(sizes=DSPRITES_SIZES):
    classes = grid(sizes).astype(np.int64)
    spans = ((1, 1), (1, 3), (0.5, 1), (0, 2 * np.pi), (0, 1), (0, 1))
    tables = [np.linspace(*span, size) for span, size in zip(spans, sizes, strict=True)]
    values = np.stack([table[column] for table, column in zip(tables, classes.T, strict=True)], 1)
    images = np.random.default_rng(0).integers(0, 2, (len(classes), 64, 64), dtype=np.uint8)
    return {"imgs": images, "latents_classes": classes, "latents_values": values}


def write_dsprites(folder, **changes):
    """Write a compressed .npz with `metadata` pickled as in Python 2."""
    arrays, header = {**dsprites_arrays(), **changes}, io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|O", "fortran_order": False, "shape": ()})
    path = folder / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata.npy", header.getvalue() + pickle.dumps(NotUnpickled(), protocol=2))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array)
    return arrays


def write_dsprites_hdf5(folder):
    arrays = dsprites_arrays()
    with h5py.File(folder / "dsprites.hdf5", "w") as file:
        file.create_dataset("imgs", data=arrays["imgs"], chunks=(45, 2, 4), compression="gzip")
        file["latents/classes"], file["latents/values"] = arrays["latents_classes"], arrays["latents_values"]
    return arrays


# --- extended_yale_b -----------------------------------------------------------------------------------------------

YALE_ROWS = [(1, 0, 0), (1, -130, 20), (2, 0, 0), (2, 70, -35), (39, 0, 90), (39, -130, 20)]


def pgm(image):
    return b"P5\n%d %d\n255\n" % image.shape[::-1] + image.tobytes()


def write_extended_yale_b(folder):
    """Write the images and other files of the archive: notes, ambient images, failed exposures, system files."""
    faces = {row: random_bytes(192, 168, seed=i) for i, row in enumerate(YALE_ROWS)}
    files = {
        f"CroppedYale/yaleB{s:02}/yaleB{s:02}_P00A{a:+04}E{e:+03}.pgm": pgm(face) for (s, a, e), face in faces.items()
    }
    others = {
        "CroppedYale/yaleB01/yaleB01_P00.info": b"yaleB01_P00A+000E+00.pgm\n",
        "CroppedYale/yaleB01/yaleB01_P00_Ambient.pgm": pgm(np.zeros((480, 640), np.uint8)),
        "CroppedYale/yaleB11/yaleB11_P00A+050E-40.pgm.bad": b"",
        "__MACOSX/CroppedYale/yaleB01/._yaleB01_P00A+000E+00.pgm": b"junk",
    }
    zip_files(folder / "CroppedYale.zip", files | others)
    return faces


# --- fsdd ----------------------------------------------------------------------------------------------------------


def wav(sound, channels=1, width=2, rate=8000):
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate)
        file.writeframes(sound.astype("<i2").tobytes())
    return buffer.getvalue()


def tone(hertz, seconds=0.5):
    return 10000 * np.sin(2 * np.pi * hertz * np.arange(int(8000 * seconds)) / 8000)


def fsdd_sounds(takes=11):
    rows = itertools.product((0, 7), ("theo", "george"), range(takes))
    return {row: tone(200 + 50 * i) for i, row in enumerate(rows)}


def write_fsdd(folder, sounds=None):
    sounds, root = fsdd_sounds() if sounds is None else sounds, "free-spoken-digit-dataset-master"
    files = {f"{root}/recordings/{d}_{s}_{t}.wav": wav(sound) for (d, s, t), sound in sounds.items()}
    zip_files(folder / f"{root}.zip", {f"{root}/README.md": b"# FSDD", **files})
    return sounds


# --- lpc_sprites ---------------------------------------------------------------------------------------------------

LPC_LAYERS = ("body", "bottomwear", "topwear", "hair")
LPC_SHEET = {  # of each action the first row (with back, left, front, right) and the columns of its eight frames
    "walk": (8, (8, 1, 2, 3, 4, 5, 6, 7)),
    "spellcard": (0, (0, 1, 2, 3, 4, 5, 4, 6)),
    "slash": (12, (0, 1, 2, 3, 4, 5, 4, 0)),
}


def lpc_layers():
    """Random drawings with all degrees of transparency; frames from the same image of the sheet are equal."""
    layers = {
        name: random_bytes(1 if name == "shoes" else 6, 3, 3, 8, 64, 64, 4, seed=i)
        for i, name in enumerate((*LPC_LAYERS, "shoes"))
    }
    for variants in layers.values():
        variants[:, 1, :, 6] = variants[:, 1, :, 4]
        variants[:, 2, :, 6], variants[:, 2, :, 7] = variants[:, 2, :, 4], variants[:, 2, :, 0]
    return layers


def lpc_sheet(phases):
    """Return a sheet of 13 x 21 images with the frames [3, 3, 8, 64, 64, 4]."""
    cells = np.zeros((21, 64, 13, 64, 4), np.uint8)
    for a, (row, columns) in enumerate(LPC_SHEET.values()):
        for d, turn in enumerate((2, 1, 3)):  # front, left, right
            for frame, column in enumerate(columns):
                cells[row + turn, :, column] = phases[a, d, frame]
    return cells.reshape(21 * 64, 13 * 64, 4)


def write_lpc_sprites(folder, layers=None):
    layers = lpc_layers() if layers is None else layers
    names = {(layer, n): 1 if layer == "shoes" else n for layer in layers for n in range(len(layers[layer]))}
    files = {
        f"Sprites-master/{layer}/{name}.png": encode(lpc_sheet(layers[layer][n]), compress_level=1)
        for (layer, n), name in names.items()
    }
    zip_files(folder / "Sprites-master.zip", files)
    return layers


# --- mnist ---------------------------------------------------------------------------------------------------------

MNIST_FILES = (
    "train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte",
)  # fmt: skip


def idx(array):
    """Encode bytes in the idx format: magic number, big-endian sizes, data."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_mnist(folder, train=12, test=5, zipped=True):
    parts = [random_bytes(n, 28, 28, seed=n) for n in (train, test)]
    labels = [np.random.default_rng(n).integers(0, 10, n, dtype=np.uint8) for n in (train, test)]
    for name, array in zip(MNIST_FILES, (parts[0], labels[0], parts[1], labels[1]), strict=True):
        (folder / f"{name}.gz" if zipped else folder / name).write_bytes(
            gzip.compress(idx(array)) if zipped else idx(array)
        )
    return np.concatenate(parts), np.concatenate(labels)


# --- mpi3d ---------------------------------------------------------------------------------------------------------

MPI3D_SIZES, MPI3D_COMPLEX_SIZES = (6, 6, 2, 3, 3, 40, 40), (4, 4, 2, 3, 3, 40, 40)


def write_mpi3d(path, sizes, side=1):
    """Write all images with one pixel (or equal pixels), whose colour encodes the index."""
    index = np.arange(np.prod(sizes))
    images = np.stack([index % 251, index // 251 % 251, index // 251**2], -1).astype(np.uint8)
    np.savez_compressed(path, images=np.broadcast_to(images[:, None, None], (len(index), side, side, 3)))


# --- omniglot ------------------------------------------------------------------------------------------------------

OMNIGLOT_PARTS = {"background": ("Greek", "Latin"), "evaluation": ("Oriya",)}


def write_omniglot_part(folder, part):
    """Write 1-bit images in which ink is 0."""
    random, drawings, files = np.random.default_rng(0), {}, {f"images_{part}/": b""}
    for number, (alphabet, character) in enumerate(itertools.product(OMNIGLOT_PARTS[part], (1, 2, 10)), 401):
        for drawer in (1, 2, 20):
            drawing = random.random((105, 105)) > 0.1
            files[f"images_{part}/{alphabet}/character{character:02}/{number:04}_{drawer:02}.png"] = encode(drawing)
            drawings[alphabet, character, drawer] = Image.fromarray(drawing)
    zip_files(folder / f"images_{part}.zip", files)
    return drawings


def write_omniglot(folder):
    return write_omniglot_part(folder, "background") | write_omniglot_part(folder, "evaluation")


# --- shapes3d ------------------------------------------------------------------------------------------------------

SHAPES3D_SIZES = (3, 2, 2, 3, 4, 2)


def write_shapes3d(folder, chunks=None, **changes):
    sizes, classes = SHAPES3D_SIZES, grid(SHAPES3D_SIZES)
    hues = [np.arange(size) / 10 for size in sizes[:3]]
    tables = [*hues, np.linspace(0.75, 1.25, sizes[3]), np.arange(4.0), np.linspace(-30, 30, sizes[5])]
    labels = np.stack([table[column] for table, column in zip(tables, classes.T, strict=True)], 1)
    images = random_bytes(len(classes), 64, 64, 3)
    with h5py.File(folder / "3dshapes.h5", "w") as file:
        for name, array in {"images": images, "labels": labels, **changes}.items():
            file.create_dataset(name, data=array, chunks=chunks if name == "images" else None)
    return images, classes


# --- smallnorb -----------------------------------------------------------------------------------------------------

NORB_FILES = {"train": "smallnorb-5x46789x9x18x6x2x96x96-training", "test": "smallnorb-5x01235x9x18x6x2x96x96-testing"}
NORB_INSTANCES = {"train": (4, 6), "test": (0, 1)}


def norb_matrix(array):
    """Encode an array in the format of NORB: magic number, number of dimensions, at least three sizes, data."""
    magic = {"uint8": 0x1E3D4C55, "int32": 0x1E3D4C54}[array.dtype.name]
    sizes = [*array.shape, *[1] * (3 - array.ndim)]
    header = struct.pack(f"<ii{len(sizes)}i", magic, array.ndim, *sizes)
    return header + array.astype(array.dtype.newbyteorder("<")).tobytes()


def write_smallnorb(folder, zipped=True):
    """Write both parts with rows in random order; return the two images of each row."""
    rows = {}
    for part, name in NORB_FILES.items():
        classes = list(itertools.product(range(5), NORB_INSTANCES[part], (0, 3), (0, 2, 34), (1, 5)))
        table = np.random.default_rng(0).permutation(np.array(classes, np.int32))
        images = random_bytes(len(table), 2, 96, 96, seed=len(rows))
        rows |= {tuple(row): pair for row, pair in zip(table.tolist(), images, strict=True)}
        for kind, array in {"dat": images, "cat": table[:, 0].copy(), "info": table[:, 1:].copy()}.items():
            content, ending = norb_matrix(array), "mat.gz" if zipped else "mat"
            (folder / f"{name}-{kind}.{ending}").write_bytes(gzip.compress(content, 1) if zipped else content)
    return rows


WRITERS = {
    "cars3d": write_cars3d,
    "celeba": write_celeba,
    "coil20": write_coil20,
    "dsprites": write_dsprites,
    "extended_yale_b": write_extended_yale_b,
    "fashion_mnist": write_mnist,
    "fsdd": write_fsdd,
    "lpc_sprites": write_lpc_sprites,
    "mnist": write_mnist,
    "mpi3d_complex": lambda folder: write_mpi3d(folder / "mpi3d_real_complex.npz", MPI3D_COMPLEX_SIZES),
    "mpi3d_real": lambda folder: write_mpi3d(folder / "mpi3d_real.npz", MPI3D_SIZES),
    "mpi3d_realistic": lambda folder: write_mpi3d(folder / "mpi3d_realistic.npz", MPI3D_SIZES),
    "mpi3d_toy": lambda folder: write_mpi3d(folder / "mpi3d_toy.npz", MPI3D_SIZES),
    "omniglot": write_omniglot,
    "shapes3d": write_shapes3d,
    "smallnorb": write_smallnorb,
}
