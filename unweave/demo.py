"""The demo: the same data, with and without weak supervision, side by side in one report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from unweave.contract import UserError
from unweave.evaluate import evaluate
from unweave.progress import shown
from unweave.report import report
from unweave.train import train

DATA = "sprites(size=32)"
SETTINGS: dict[str, Any] = {"net": "small", "lr": 2e-3, "beta": 2, "steps": 6000}
RUNS: tuple[tuple[str, int], ...] = (("ada_gvae", 32), ("beta_vae", 64))  # pairs, or images: 64 images a step in both


def run_demo(out: Path, seed: int, quick: bool, console: Console) -> None:
    """Train, score, report."""
    if out.exists() and any(out.iterdir()):
        raise UserError(f"out '{out}' exists already; remove it or give another folder with --out")
    console.print(
        "Two models learn from the same 737,280 drawings. One sees single images; the other sees pairs that differ\n"
        "in one factor, without being told which. Watch what that little hint does."
    )
    models = []
    for method, batch in RUNS:
        settings = SETTINGS | {"batch": batch, "seed": seed} | ({"steps": 20} if quick else {})
        with shown(label=method) as observe:
            models.append(train(method, DATA, out=out / method, observe=observe, **settings))
    for model in models:
        scores = evaluate(model).scores
        line = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
        console.print(f"[bold]{model.config['method']}[/bold]: {line}")
    made = report(models, out / "report.html")
    console.print(f"\nThe report: [bold]{made.resolve()}[/bold]. Open it in a browser.")
