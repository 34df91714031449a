"""Compare settings of one method on one data set: all settings and seeds train as one fleet; one CSV row per run.

    python benchmarks/experiments/settings_search.py ada_gvae rooms --steps 40000 --seeds 1000-1007 \\
        --try "beta=4 lr=5e-4" --try "beta=4 lr=linear(5e-4,0,40000)" --out search.csv

Seeds of a search are used for nothing else: a figure that is quoted comes from other seeds. The script uses only names
exported by `unweave`, so PYTHONPATH may point at a checkout of another commit; pass that commit with --commit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

METRICS = ("mig", "factor_vae", "dci")
ORIGIN = [
    "method",
    "data",
    "steps",
    "batch",
    "supervision",
    "precision",
    "commit",
    "device",
    "torch",
    "date",
    "fleet_seconds",
]


def read_seeds(text: str) -> list[int]:
    """Parse "0-3,7" to [0, 1, 2, 3, 7]."""
    ranges = [part.split("-") for part in text.split(",")]
    return [seed for part in ranges for seed in range(int(part[0]), int(part[-1]) + 1)]


def read_settings(text: str) -> dict[str, Any]:
    return dict(pair.split("=", 1) for pair in text.split())


def head_commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method")
    parser.add_argument("data")
    parser.add_argument("--try", dest="tries", action="append", required=True, help='settings, "beta=4 lr=5e-4"')
    parser.add_argument("--seeds", default="1000-1007")
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--supervision", default=None)
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--commit", default=head_commit())
    parser.add_argument("--out", type=Path, default=Path("settings_search.csv"))
    return parser.parse_args()


def train_and_score(given: argparse.Namespace, folder: Path) -> Any:
    """Train all settings and seeds as one fleet in this folder; return one row per run."""
    import torch

    import unweave as uw

    shared = {"steps": given.steps, "batch": given.batch, "supervision": given.supervision, "log_every": 1000}
    shared |= {"precision": given.precision, "device": given.device, "data": given.data, "method": given.method}
    data = uw.load_data(given.data)
    tries = [(text, seed) for text in given.tries for seed in read_seeds(given.seeds)]
    runs = [
        {**shared, "data": data, **read_settings(text), "seed": seed, "out": folder / str(index)}
        for index, (text, seed) in enumerate(tries)
    ]
    start = time.monotonic()
    trained = uw.fit(runs, strategy="batched")
    seconds = time.monotonic() - start
    print(f"trained {len(runs)} runs in {seconds:.0f} s", flush=True)
    table = uw.score_runs(trained, metrics=list(METRICS), device=given.device)
    print(f"scored in {time.monotonic() - start - seconds:.0f} s", flush=True)
    scores = {name: column for name, column in table.items() if name.startswith(METRICS)}
    device = torch.cuda.get_device_name() if given.device.startswith("cuda") else "CPU"
    return table.assign(
        settings=[text for text, _ in tries],
        seed=[seed for _, seed in tries],
        supervision=given.supervision or "default",
        commit=given.commit,
        device=device,
        torch=torch.__version__,
        date=time.strftime("%Y-%m-%d"),
        fleet_seconds=round(seconds),
        **{name: getattr(given, name) for name in ("method", "data", "steps", "batch", "precision")},
    )[["settings", "seed", *scores, *ORIGIN]]


def main() -> None:
    given = arguments()
    with tempfile.TemporaryDirectory() as folder:
        table = train_and_score(given, Path(folder))
        table.to_csv(given.out, index=False)  # before the folder of the runs is removed, which takes seconds
        scores = [name for name in table if name.startswith(METRICS)]
        for text in given.tries:
            rows = table[table["settings"] == text]
            figures = (
                f"{name} {rows[name].median():.3f} ({rows[name].min():.3f} - {rows[name].max():.3f})" for name in scores
            )
            print(f"{text:40} {'  '.join(figures)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
