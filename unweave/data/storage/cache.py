"""Where rendered stores are kept between uses."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from unweave.runs import write_atomic


def cache_dir() -> Path:
    """`$UNWEAVE_CACHE`, else `$XDG_CACHE_HOME/unweave`, else `~/.cache/unweave`."""
    if chosen := os.environ.get("UNWEAVE_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unweave"


def cached_array(name: str, shape: tuple[int, ...], make: Callable[[], np.ndarray]) -> np.ndarray:
    """The array under this name, made and stored on first use; a cache that cannot be written is no error."""
    path = cache_dir() / f"{name}.npz"
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            array = stored["array"]
        if array.shape == shape:
            return array
    except Exception:  # absent, truncated or not ours
        pass
    array = make()
    buffer = io.BytesIO()
    np.savez_compressed(buffer, array=array)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, buffer.getvalue())
    except OSError:
        pass
    return array
