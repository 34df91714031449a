"""Where rendered stores are kept between uses."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np


def cache_dir() -> Path:
    """`$UNWEAVE_CACHE`, else `$XDG_CACHE_HOME/unweave`, else `~/.cache/unweave`."""
    if chosen := os.environ.get("UNWEAVE_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unweave"


def cached_array(name: str, shape: tuple[int, ...], make: Callable[[], np.ndarray]) -> np.ndarray:
    """The array under this name, made and stored on first use; a cache that cannot be written is no error."""
    path = cache_dir() / f"{name}.npz"
    try:
        with np.load(path, allow_pickle=False) as stored:
            array = stored["array"]
        if array.shape == shape:
            return array
    except Exception:  # absent, truncated or not ours
        pass
    array = make()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file:
            np.savez_compressed(file, array=array)
        os.replace(file.name, path)
    except OSError:
        pass
    return array
