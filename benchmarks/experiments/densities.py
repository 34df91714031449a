"""Plot the distribution of a study's scores for each method and data set.

    python benchmarks/experiments/densities.py \\
        benchmarks/experiments/results/tran2021_h200_2026-11-16.csv mig group_mig --out densities.png

One column per data set and one row per score. Each curve is a kernel density estimate (scipy, Scott's bandwidth) of all
runs of a method with all of its settings; the ticks below are the runs. Methods with fewer than 8 runs are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde

matplotlib.use("Agg")
from matplotlib import pyplot as plt

MIN_RUNS = 8
LABELS = {"mig": "MIG", "group_mig": "group-MIG"}
COLOURS = ("#1f5f6b", "#c4622d", "#7a5aa6", "#4e8a3d")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scores", type=Path)
    parser.add_argument("names", nargs="+", help="scores (columns) to plot")
    parser.add_argument("--out", type=Path, default=Path("densities.png"))
    given = parser.parse_args()
    frame = pd.read_csv(given.scores)
    frame = frame.groupby("family").filter(lambda runs: len(runs) >= MIN_RUNS)
    sets, methods = list(frame.data.unique()), list(frame.method.unique())
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    size = (4.2 * len(sets), 2.1 * len(given.names))
    figure, axes = plt.subplots(len(given.names), len(sets), figsize=size, squeeze=False)
    for name, row in zip(given.names, axes, strict=True):
        for data, axis in zip(sets, row, strict=True):
            panel = frame[frame.data == data]
            at = np.linspace(panel[name].min() - 0.12, panel[name].max() + 0.12, 500)
            for index, method in enumerate(methods):
                values = panel[panel.method == method][name].dropna().to_numpy()
                if len(values) >= MIN_RUNS:
                    draw(axis, at, values, COLOURS[index], f"{method}, {len(values)} runs", index)
            top = axis.get_ylim()[1]
            axis.set_ylim(-0.24 * top, top)
            axis.set_xlim(at[0], at[-1])
            axis.set_title(f"{LABELS.get(name, name)} on {data}", loc="left")
            axis.set_yticks([])
            axis.spines["left"].set_visible(False)
            axis.axhline(0, color="#a9a59c", linewidth=0.8)
    for axis in axes[0]:
        axis.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(given.out, dpi=160)


def draw(axis: Any, at: np.ndarray, values: np.ndarray, colour: str, label: str, index: int) -> None:
    density = gaussian_kde(values)(at)
    axis.fill_between(at, density, color=colour, alpha=0.16, linewidth=0)
    axis.plot(at, density, color=colour, linewidth=1.6, label=label)
    height = 0.155 - 0.055 * index  # of the panel, below the line
    axis.plot(
        values, np.full(len(values), height), "|", color=colour, markersize=5, transform=axis.get_xaxis_transform()
    )


if __name__ == "__main__":
    main()
