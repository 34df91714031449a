"""Changes of run folders, for tests of run histories: edited, damaged, deleted, moved and copied files.

Each change takes the folder of a run and a random generator. It returns what it did and the words of which an error
about it contains one, or None if it does not apply. No words: nothing that matters has changed, and no error is right.
"""

import json
import random
import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import load_file

WEIGHTS, CHECKPOINT, CODES = "weights.safetensors", "checkpoint.safetensors", "codes.safetensors"
PREVIOUS = "checkpoint.previous.safetensors"
FLIPPED = (WEIGHTS, CHECKPOINT, PREVIOUS, CODES, "log.jsonl", "scores.json", "model.json")
DELETED = (WEIGHTS, CHECKPOINT, PREVIOUS, CODES, "scores.json", "time.json")


class Change(NamedTuple):
    """A change, and the words of which an error about it contains one."""

    text: str
    words: tuple[str, ...] = ()


def weights_and_log(run: Path) -> dict[str, bytes | list[str]]:
    """Return the bytes of the final weights and the lines of the log."""
    weights = {name: array.tobytes() for name, array in load_file(run / WEIGHTS).items()}
    return {**weights, "log": (run / "log.jsonl").read_text().splitlines()}


def flip_bit(run: Path, draw: random.Random) -> Change | None:
    """Flip one bit of a file; in texts, of a digit, so that the file can still be read."""
    unread = ("log.jsonl",) if (run / WEIGHTS).is_file() else ()  # the log of a finished run is only read by reports
    present = [name for name in FLIPPED if (run / name).is_file() and name not in unread]
    if not present:
        return None
    name = draw.choice(present)
    content = bytearray((run / name).read_bytes())
    places = range(len(content)) if name.endswith("safetensors") else np.flatnonzero(np.isin(content, list(b"024689")))
    if not len(places):
        return None
    place = int(draw.choice(places))
    content[place] ^= 1 << draw.randrange(8) if name.endswith("safetensors") else 1
    (run / name).write_bytes(content)
    words = ("shape", "classes") if name == "model.json" else ()
    return Change(f"flip a bit of byte {place} of {name}", (name, name.partition(".")[0], *words))


def delete_file(run: Path, draw: random.Random) -> Change | None:
    present = [name for name in DELETED if (run / name).is_file()]
    if not present:
        return None
    (run / (name := draw.choice(present))).unlink()
    words = ("weights", "checkpoint") if name in (WEIGHTS, CHECKPOINT, PREVIOUS) else ()
    return Change(f"delete {name}", words)


def edit_config(run: Path, draw: random.Random) -> Change | None:
    """Edit one field of config.json."""
    path = run / "config.json"
    if not path.is_file():
        return None
    config, finished = json.loads(path.read_text()), (run / WEIGHTS).exists()
    edits = {
        "seed": lambda: config.update(seed=config["seed"] + 1),
        "batch": lambda: config.update(batch=config["batch"] + 2),
        # More steps extend an unfinished run of one stage.
        "steps": lambda: config.update(steps=config["steps"] + draw.choice([-10, -1, 1 if finished else -1])),
        "log_every": lambda: config.update(log_every=config["log_every"] + 1),
        "method": lambda: config.update(method="beta_vae" if config["method"] == "vae" else "vae"),
        "hyper": lambda: config.update(hyper={n: 2 * v for n, v in config["hyper"].items()}),
        "arguments": lambda: config["arguments"].update(latents=config["arguments"]["latents"] + 1),
        "optimizers": lambda: [settings.update(lr=0.5) for settings in config.get("optimizers", {}).values()],
        "supervision": lambda: config.update(supervision="pairs(share=['a'])"),
        "data_options": lambda: config["data_options"].update(sigma=0.3, fraction=0.5, size=16, fit="pad"),
    }
    name = draw.choice(list(edits))
    before = json.dumps(config)
    edits[name]()
    if json.dumps(config) == before:
        return None
    path.write_text(json.dumps(config, indent=2) + "\n")
    words = {
        "method": ("'vae'", "'beta_vae'"), "optimizers": ("lr",), "data_options": ("option", "data"),
        "arguments": ("latents",), "hyper": ("beta",),
    }  # fmt: skip
    return Change(f"edit {name} in config.json", ("config.json", "configuration", name, *words.get(name, ())))


def reorder_keys(run: Path, draw: random.Random) -> Change | None:
    """Write a JSON file with its keys in another order and other white space, which changes nothing."""
    name = draw.choice(["config.json", "model.json", "scores.json"])
    if not (run / name).is_file():
        return None
    content = json.loads((run / name).read_text())
    (run / name).write_text(json.dumps(dict(reversed(content.items()))))
    return Change(f"reorder the keys of {name}")


def empty_folder(run: Path, draw: random.Random) -> Change:
    shutil.rmtree(run)
    run.mkdir()
    return Change("empty the folder", (run.name,))


def remove_folder(run: Path, draw: random.Random) -> Change:
    shutil.rmtree(run)
    return Change("remove the folder", (run.name,))


def keep_only_weights(run: Path, draw: random.Random) -> Change | None:
    """Remove the checkpoints of the finished runs of a sweep, and perhaps the weights of one, to train it again."""
    for path in run.parent.glob("*/checkpoint*"):
        if (path.parent / WEIGHTS).is_file():
            path.unlink()
    if (run / WEIGHTS).is_file() and draw.random() < 0.7:
        (run / WEIGHTS).unlink()
        return Change("remove the checkpoints of finished runs and the weights", ("weights", "checkpoint"))
    return Change("remove the checkpoints of finished runs")


def remove_manifest(run: Path, draw: random.Random) -> Change | None:
    """Remove a file beside the runs of a sweep."""
    files = sorted(path for path in run.parent.iterdir() if path.is_file())
    if not files:
        return None
    (path := draw.choice(files)).unlink()
    return Change(f"remove {path.name} of the sweep", (path.name, "sweep"))


RUN_CHANGES = (flip_bit, flip_bit, flip_bit, edit_config, edit_config, delete_file, delete_file, reorder_keys)
SWEEP_CHANGES = (empty_folder, remove_folder, remove_manifest, keep_only_weights, keep_only_weights)
