"""The declaration of a file format for arrays of images and factors."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unweave.errors import UserError

Arrays = dict[str, np.ndarray]


class ArrayFormat(NamedTuple):
    """A file format whose files contain named arrays: images and, optionally, factors.

    Parameters
    ----------
    suffixes : suffixes of the file names, in lower case and with the dot
    signature : first bytes of every file; b"" if the format has none
    help : one line for `unweave data list`
    read : returns the arrays by name; if the second argument is True, large arrays may stay in the file. It may raise
        any exception, which becomes an error about the file. It must not execute code from the file.
    write_example : writes the named arrays, or those that the format can store; the tests read them back
    """

    suffixes: tuple[str, ...]
    signature: bytes
    help: str
    read: Callable[[Path, bool], Arrays]
    write_example: Callable[[Path, Mapping[str, np.ndarray]], None]

    def load(self, path: Path, memmap: bool) -> Arrays:
        """Return the arrays of a file by name; raise a UserError if it cannot be read."""
        try:
            with open(path, "rb") as file:
                if file.read(len(self.signature)) != self.signature:
                    raise ValueError(f"the file does not begin like a file of this format ({self.suffixes[0]})")
            return self.read(path, memmap)
        except Exception as error:  # a damaged file can cause almost any exception
            reason = " ".join(str(error).split()) or type(error).__name__
            message = f"data {str(path)!r} cannot be read: {reason}; pass an intact file"
            raise UserError(message, argument="data", value=str(path), accepted="an intact file") from error
