"""The demo: one report about two models of the same data, with and without weak supervision."""

from pathlib import Path
from typing import Any

from unweave.cli import bold, out_console
from unweave.cli.progress import progress_observer, same_command_resumes
from unweave.config import read_config
from unweave.errors import invalid
from unweave.evaluation.evaluate import evaluate
from unweave.model import TrainedModel
from unweave.report import report
from unweave.runs import RunFolder
from unweave.training.progress import ProgressCallback
from unweave.training.train import resume, train

DATA = "sprites(size=32)"
SETTINGS: dict[str, Any] = {"net": "small", "lr": 2e-3, "beta": 2, "steps": 6000}
RUNS: tuple[tuple[str, int], ...] = (
    ("ada_gvae", 32),
    ("beta_vae", 64),
)  # (method, batch size): 64 images per step in both


def run_demo(out: Path, seed: int, quick: bool) -> None:
    """Train both models, score them and write the report."""
    out_console.print(
        "Two models are trained on the same 737,280 images. One gets single images, the other pairs that differ in "
        "one factor, without knowing which. With pairs, the latents match the factors for nearly every seed; "
        "with single images, this depends on the seed.",
        soft_wrap=False,
    )
    models = []
    for method, batch in RUNS:
        settings = SETTINGS | {"batch": batch, "seed": seed} | ({"steps": 20} if quick else {})
        with same_command_resumes(), progress_observer(label=method) as observe:
            models.append(_trained(method, out / method, settings, observe))
    for model in models:
        scores = evaluate(model).scores
        line = ", ".join(f"{name} {value:.2f}" for name, value in scores.items())
        out_console.print(bold(model.config.method) + f": {line}")
    made = report(models, out / "report.html")
    out_console.print("\nThe report:", bold(made.resolve()) + ". Open it in a browser.")


def _trained(method: str, path: Path, settings: dict[str, Any], observe: ProgressCallback) -> TrainedModel:
    """Return the model in the folder after training it, or after continuing its training."""
    if not path.exists():
        return train(method, DATA, out=path, observe=observe, **settings)
    config = read_config(RunFolder.open(path))
    if (config.method, config.seed, config.steps) != (method, settings["seed"], settings["steps"]):
        raise invalid("out", str(path.parent), "a new folder, or one of the same demo", hint="this one has other runs")
    return resume(path, observe=observe)
