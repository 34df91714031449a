"""The commands that tell what there is: `unweave list` and `unweave info`."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from unweave.errors import invalid


def list_(what: Annotated[str, typer.Argument(help="methods, metrics or data")]) -> None:
    """What there is."""
    from unweave.data import DATASETS
    from unweave.methods import METHODS
    from unweave.metrics import METRICS

    rows: dict[str, list[tuple[str, str]]] = {
        "methods": [(name, cls.paper) for name, cls in METHODS.items()],
        "metrics": [(name, metric.description) for name, metric in METRICS.items()],
        "data": [(name, (inspect.getdoc(cls) or "").split("\n")[0]) for name, cls in DATASETS.items()],
    }
    if what not in rows:
        raise invalid("what", what, "methods, metrics or data")
    table = Table(what, "", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, about in rows[what]:
        table.add_row(f"[bold]{name}[/bold]", about)
    Console().print(table)


def info(method: Annotated[str, typer.Argument(help="a method; see: unweave list methods")]) -> None:
    """A method's equation, its settings with their defaults, and the paper's values."""
    from unweave.contract import hyper_params, stages, static_arguments
    from unweave.methods.semi_supervised import accepts_label_term
    from unweave.training.build import find_method

    cls = find_method(method)
    Console().print(f"[bold]{method}[/bold]  {cls.__doc__}\n{cls.paper}\n", highlight=False)
    Console().print("It minimises\n  " + cls.equation + "\n", markup=False, highlight=False)
    table = Table("--set", "default", "published", "meaning", box=None, padding=(0, 2, 0, 0))
    traced = {name: knob for stage in stages(cls) for name, knob in hyper_params(stage).items()}
    fixed = {name: parameter for stage in stages(cls) for name, parameter in static_arguments(stage).items()}
    for name, knob in traced.items():
        table.add_row(name, f"{knob.default:g}", knob.paper, knob.about)
    for name, parameter in fixed.items():
        table.add_row(name, str(parameter.default), "", STATIC_HELP.get(name, ""))
    Console().print(table)
    if accepts_label_term(cls):
        more = "--supervision 'labels(n=100)' --set semi_supervised=xent (or l2, cov) --set gamma_sup=4"
        Console().print(f"\nWith a few labels: {more}", highlight=False, soft_wrap=True)


STATIC_HELP = {
    "latents": "size of the code",
    "net": "locatello, burgess, kim, small, mlp, makhzani or kingma",
    "likelihood": "bernoulli, gaussian or laplace, in nats",
    "estimator": "mws (minibatch-weighted) or mss (stratified)",
    "one_batch": "permute the batch that is scored instead of a second one",
    "clusters": "how many are looked for; 0, which aae_reduce takes, is as many as labels have classes, or 20",
    "batch_norm": "normalise the encoder's dense hidden layers over the batch",
    "style_batch_norm": "normalise the style over the batch too",
    "discriminator_steps": "how often critic and encoder meet for one move of the reconstruction",
    "discriminator_width": "units in each hidden layer of the critic",
    "discriminator_depth": "hidden layers of the critic",
    "divergence": "of all codes from the prior: mmd, stein or adversarial",
    "kernel": "of mmd: imq or rbf",
    "encoder": "deterministic or gaussian",
    "prior": "normal, uniform, mixture, swiss_roll or categorical (a class, and a normal style)",
    "components": "of the mixture, or classes of categorical",
    "generator": "what the encoder minimises against its critic: non_saturating, minimax or ratio",
    "known_k": "use the number of changed factors of each pair",
    "symmetric": "compare a pair by its divergence in both directions",
    "d": "in how many latents every two classes are to be told apart",
    "sphere": "embeddings have length 1",
    "content": "how many latents, the first ones, a group shares; 0 is half",
    "level": "what is independent: inter, inter_intra_one or inter_intra_all",
    "binarize": "draw black or white for every pixel, its grey value being the chance of white",
    "classifier": "tsvm (learns from images without a label too) or regression",
    "width": "width of the kernel between codes",
    "style": "size of the style beside the class",
    "per_member": "count the content's KL once a member instead of once a group",
    "graph": "variables and what each depends on, such as the default's",
    "discrete": "sum over unknown classes (enumerate) or draw them (relaxed)",
    "samples": "draws for each labelled image; 0 is as many as the graph needs",
}
