"""Scores stored in a run folder, with a digest by which a damaged or edited file is recognised."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from unweave.errors import UserError
from unweave.runs import RunFolder

SCORES = "scores.json"


def read_scores(folder: RunFolder) -> dict[str, Any]:
    """Return the stored scores; {} if there are none, or if they are not as they were written.

    Files of older versions have no digest and are not compared.
    """
    try:
        stored = folder.read_json(SCORES) if folder.has(SCORES) else {}
    except UserError:  # damaged
        return {}
    intact = isinstance(stored, dict) and stored.get("digest", _digest(stored)) == _digest(stored)
    return stored if intact else {}


def write_scores(folder: RunFolder, content: Mapping[str, Any]) -> None:
    folder.write_json(SCORES, {**content, "digest": _digest(content)})


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps({name: value for name, value in content.items() if name != "digest"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
