"""Read arrays of HDF5 files, from the file itself only: a file may name other files, whose bytes become its values."""

from typing import Any


def h5_array(file: Any, name: str) -> Any:
    """Return the array `name` of an open `h5py.File`; raise a ValueError if it is missing or in another file."""
    import h5py

    found = file
    for part in name.split("/"):
        link = found.get(part, getlink=True) if isinstance(found, h5py.Group) else None
        if link is None:
            raise ValueError(f"it has no array '{name}'")
        if not isinstance(link, h5py.HardLink):
            raise ValueError(f"array '{name}' is a link; only arrays of the file itself are read")
        found = found[part]
    if not isinstance(found, h5py.Dataset):
        raise ValueError(f"'{name}' is not an array")
    if found.external or found.is_virtual:
        raise ValueError(f"the values of array '{name}' are in other files; only those of the file itself are read")
    return found
