"""Time that fingerprints, digests and locks add to a training of two minutes and to opening a folder of 20,000 images.

python benchmarks/reliability/integrity_cost.py --baseline CHECKOUT_OF_d4802f3 --out benchmarks/reliability

Both versions run in alternation, each measurement in a process and with a cache of its own. The difference of two
minutes on a busy machine is mostly noise, so the added functions are also timed directly, in the present version.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[2]
# The added functions, "module:name" or "module:Class.method"; inner calls are not counted twice.
ADDED = (
    "unweave.config.identity:check_identity",
    "unweave.config.identity:identity",
    "unweave.data.dataset:Dataset.compute_digest",
    "unweave.data.used_labels:store_used_labels",
    "unweave.engine.program:State.not_finite",
    "unweave.runs.checkpoints:keep_previous_checkpoint",
    "unweave.runs.files:sync_folder",
    "unweave.runs.folder:RunFolder._current_digests",
    "unweave.runs.lock:lock",
    "unweave.runs.tensors:_digest",
)
VERSIONS = ("before", "now")


# --- what is measured, in a process of its own ----------------------------------------------------------------------


class Timer:
    """Sum of the seconds in some functions; calls inside of a timed one are not counted again."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.active = False

    def wrap(self, name: str) -> None:
        """Replace a function by a timed one, in every module that has imported it."""
        module_name, _, path = name.partition(":")
        owner: Any = importlib.import_module(module_name)
        *outer, last = path.split(".")
        for part in outer:
            owner = getattr(owner, part)
        original = getattr(owner, last)
        timed = self._timed(name, original)
        setattr(owner, last, timed)
        for module in [m for n, m in sys.modules.items() if n.startswith("unweave")]:
            if vars(module).get(last) is original:
                setattr(module, last, timed)

    def _timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            with self.measure(name):
                result = function(*args, **options)
            return self._timed_context(name, result) if isinstance(result, AbstractContextManager) else result

        return call

    @contextmanager
    def _timed_context(self, name: str, context: AbstractContextManager[Any]) -> Iterator[Any]:
        """Enter and leave the context; only that is timed, not the block."""
        with ExitStack() as stack:
            with self.measure(name):
                value = stack.enter_context(context)
            yield value
            with self.measure(name):
                stack.close()

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        outermost, began = not self.active, time.perf_counter()
        self.active = True
        try:
            yield
        finally:
            if outermost:
                self.active = False
                self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(task: str, folder: str, steps: int, directly: bool) -> dict[str, Any]:
    """Return the seconds of one task of this process: "open" the folder, or "train" on it."""
    import torch

    import unweave as uw

    torch.set_num_threads(1)
    train = uw.train
    uw.load_data(folder + "-few")  # imports all modules that are used
    timer = Timer()
    for name in ADDED if directly else ():
        timer.wrap(name)
    began, cpu = time.perf_counter(), cpu_seconds()
    if task == "open":
        uw.load_data(folder)
    else:
        with tempfile.TemporaryDirectory() as out:
            options = {"steps": steps, "batch": 64, "engine": "loop", "device": "cpu"}
            train("beta_vae", folder, out=f"{out}/run", **options)
    return {"seconds": time.perf_counter() - began, "cpu": cpu_seconds() - cpu, "added": timer.seconds}


# --- both versions in alternation -----------------------------------------------------------------------------------


def run(version: str, task: str, arguments: argparse.Namespace, work: Path, steps: int, directly: bool = False) -> dict:
    """Measure one task of a version, in a new process."""
    root = arguments.baseline if version == "before" else ROOT
    settings = {
        "PYTHONPATH": str(root.resolve()),
        "UNWEAVE_CACHE": str(work / f"cache-{version}"),
        "OMP_NUM_THREADS": "1",
    }
    words = ["--child", task, "--folder", str(work / "images"), "--steps", str(steps), *["--directly"] * directly]
    command = [sys.executable, "-P", __file__, *words]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{version}, {task}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def write_images(folder: Path, count: int) -> None:
    """Write random images of 64 x 64 pixels as PNG files in 100 sub-folders."""
    draw = np.random.default_rng(0)
    for n in range(count):
        path = folder / f"{n % 100:02}" / f"{n:06}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = draw.integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(np.kron(coarse, np.ones((8, 8), np.uint8))).save(path)


def alternate(
    task: str, repeats: int, arguments: argparse.Namespace, work: Path, steps: int = 0
) -> dict[str, list[dict]]:
    """Return the measurements of both versions, which take turns."""
    found: dict[str, list[dict]] = {version: [] for version in VERSIONS}
    for repeat in range(repeats):
        for version in VERSIONS if repeat % 2 else reversed(VERSIONS):
            found[version].append(run(version, task, arguments, work, steps))
            print(f"{task} {version}: {found[version][-1]['seconds']:.2f} s", flush=True)
    return found


def rows(name: str, found: dict[str, list[dict]]) -> list[str]:
    """Return one row per quantity: the medians, with the ranges, and the median difference."""
    lines = []
    for quantity, unit in (("seconds", "time"), ("cpu", "CPU time")):
        values = {version: [one[quantity] for one in found[version]] for version in VERSIONS}
        before, now = (statistics.median(values[version]) for version in VERSIONS)
        cells = [
            f"{statistics.median(v):.2f} ({min(v):.2f} to {max(v):.2f})" for v in (values["before"], values["now"])
        ]
        lines.append(f"| {name}, {unit} | {cells[0]} | {cells[1]} | {now - before:+.2f} ({(now / before - 1):+.1%}) |")
    return lines


def report(arguments: argparse.Namespace, work: Path) -> str:
    write_images(work / "images", arguments.images)
    write_images(work / "images-few", 2)
    first = {version: [run(version, "open", arguments, work, 0)] for version in VERSIONS}
    second = alternate("open", arguments.repeats, arguments, work)
    trial = run("before", "train", arguments, work, 20)["seconds"] / 20
    steps = max(20, round(arguments.seconds / trial))
    trained = alternate("train", arguments.trainings, arguments, work, steps)
    direct = run("now", "train", arguments, work, steps, directly=True)
    share = sum(direct["added"].values()) / direct["seconds"]
    lines = [
        f"# Cost of fingerprints, digests and locks, {time.strftime('%Y-%m-%d')}",
        "",
        f"`python benchmarks/reliability/integrity_cost.py --baseline {arguments.baseline.name} "
        f"--images {arguments.images} --seconds {arguments.seconds} --trainings {arguments.trainings}`",
        "",
        f"Before: commit {commit(arguments.baseline)}; now: commit {commit(ROOT)}. {platform.machine()}, one thread. "
        f"Medians of {arguments.repeats} openings and {arguments.trainings} trainings, with the range, in seconds.",
        "",
        "| task | before | now | difference |",
        "| --- | --- | --- | --- |",
        *rows(f"first opening of a folder of {arguments.images:,} images", first),
        *rows("second opening", second),
        *rows(f"training, {steps} steps of `beta_vae` on this folder", trained),
        "",
        f"The added functions, timed directly in one training of {direct['seconds']:.1f} s: {share:.2%}.",
        "",
        "| function | seconds |",
        "| --- | --- |",
        *(f"| `{name}` | {seconds:.4f} |" for name, seconds in sorted(direct["added"].items())),
    ]
    return "\n".join(lines) + "\n"


def commit(folder: Path) -> str:
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty=+", "--abbrev=7"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--baseline", type=Path, help="checkout of the commit before")
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=120, help="length of a training")
    parser.add_argument("--repeats", type=int, default=7, help="openings of the folder, per version")
    parser.add_argument("--trainings", type=int, default=3, help="trainings, per version")
    parser.add_argument("--out", type=Path, help="folder for the dated table")
    for hidden in ("--child", "--folder"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--directly", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measure(arguments.child, arguments.folder, arguments.steps, arguments.directly)))
        return
    if not arguments.baseline:
        parser.error("--baseline is missing")
    with tempfile.TemporaryDirectory() as work:
        text = report(arguments, Path(work))
    print(text)
    if arguments.out:
        (arguments.out / f"integrity_cost_{time.strftime('%Y-%m-%d')}.md").write_text(text)


if __name__ == "__main__":
    main()
