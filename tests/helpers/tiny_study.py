"""A study of seconds: two methods, two strengths, two seeds, on images of 8 x 8."""

from unweave.studies.study import Published, Row, Study, settings_text
from unweave.training.sweep import expand

SMALL = {"data": "rooms(size=8)", "net": "small", "latents": 3, "batch": 4, "steps": 3, "log_every": 2}


def runs(scale):
    grid = [{"method": "vae"}, *expand({"method": ["beta_vae"], "beta": [1, 4]}, [0])]
    seeds = range(2) if scale == "full" else range(1)
    return [{**SMALL, **run, "seed": seed} for run in grid for seed in seeds]


def row(run):
    return Row(f"{run['method']} on rooms", settings_text(run, "beta"))


TINY = Study(
    name="tiny",
    paper="Nobody, On Nothing, 2026",
    question="Does it run?",
    runs=runs,
    row=row,
    scores=("mig", "modularity"),
    published=(
        Published("beta_vae on rooms", "mig", (0.1, 0.3), "range", "read", "a figure"),
        Published("beta_vae on rooms, beta=4", "mig", 0.25, "median", "recalled", "a table"),
        Published("beta_vae on rooms", "mig", 2.0, "mean", "second-hand", "a text", ratio_to="vae on rooms"),
        Published("vae on rooms", "modularity", 0.9, "best", "read", "a table"),
    ),
)
