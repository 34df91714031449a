"""Play random histories of runs; count the steps that equal a computation from scratch and those that are refused.

python benchmarks/reliability/histories.py --count 2000 --seed 0 --workers 2
python benchmarks/reliability/histories.py --only 1234                        # one history again, with its steps

A history trains runs, stops them, changes data or folders, resumes, evaluates, compares and predicts; see
tests/helpers/histories.py. A step that neither equals the computation from scratch nor ends with an error of one line
that names a change is a violation: it is printed with its seed and all steps. With --out the counts are written as a
table in Markdown.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "helpers"))


class Played(NamedTuple):
    """What happened in the histories of one problem."""

    count: int
    outcomes: Counter[str]
    violations: list[str]


def play_group(seeds: Iterable[int]) -> Played:
    """Play histories that share what is computed from scratch."""
    import torch
    from histories import SHARED, Violation, play
    from scratch_runs import Scratch, random_problem

    torch.set_num_threads(1)
    seeds, outcomes, violations = list(seeds), Counter[str](), list[str]()
    folder = Path(tempfile.mkdtemp(prefix="histories-"))
    scratch = Scratch(random_problem(seeds[0] // SHARED), folder / "scratch")
    for seed in seeds:
        (own := folder / str(seed)).mkdir()
        try:
            outcomes.update(play(seed, own, scratch).outcomes)
        except Violation as violation:
            violations.append(str(violation))
        shutil.rmtree(own)
    shutil.rmtree(folder)
    return Played(len(seeds), outcomes, violations)


def groups(first: int, count: int) -> list[list[int]]:
    """Return the seeds, those of one problem together."""
    from histories import SHARED

    found: dict[int, list[int]] = {}
    for seed in range(first, first + count):
        found.setdefault(seed // SHARED, []).append(seed)
    return list(found.values())


def table(total: Played, arguments: argparse.Namespace, seconds: float) -> str:
    """Return the counts in Markdown: steps by operation, equal or refused with the word that names the change."""
    operations: dict[str, Counter[str]] = {}
    for outcome, count in total.outcomes.items():
        operation, _, end = re.sub(r"\w+-\w+-steps\d+-seed\d+|run\d", "name of the run", outcome).partition(": ")
        operations.setdefault(operation, Counter())[end] += count
    lines = [
        f"# Random histories of runs, {time.strftime('%Y-%m-%d')}",
        "",
        f"`python benchmarks/reliability/histories.py --count {arguments.count} --seed {arguments.seed}`: "
        f"{total.count} histories, {sum(total.outcomes.values())} steps with a result or an error, "
        f"{len(total.violations)} violations.",
        f"Commit {commit()}, {platform.machine()}, {arguments.workers} workers, {seconds:.0f} s.",
        "",
        "| step | equal to the computation from scratch | refused | the error names |",
        "| --- | --- | --- | --- |",
    ]
    for operation, ends in sorted(operations.items()):
        refused = Counter({end.removeprefix("refused, "): n for end, n in ends.items() if end != "equal"})
        named = ", ".join(f"{word} {n}" for word, n in refused.most_common())
        lines.append(f"| {operation} | {ends['equal']} | {sum(refused.values())} | {named} |")
    return "\n".join(lines) + "\n"


def commit() -> str:
    from unweave.runs import environment

    return environment()["git"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first history")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", type=int, help="play this history alone and print its steps")
    parser.add_argument("--out", type=Path, help="file for the table")
    arguments = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    if arguments.only is not None:
        from histories import play

        with tempfile.TemporaryDirectory() as folder:
            (own := Path(folder) / "history").mkdir()
            history = play(arguments.only, own)
        print("\n".join([*history.steps, "", *history.outcomes]))
        return
    began, total = time.monotonic(), Played(0, Counter(), [])
    with multiprocessing.get_context("spawn").Pool(arguments.workers) as pool:
        for played in pool.imap_unordered(play_group, groups(arguments.seed, arguments.count)):
            total = Played(*(before + new for before, new in zip(total, played, strict=True)))
            for violation in played.violations:
                print(violation, flush=True)
            if total.count % 100 == 0:
                print(f"{total.count} histories, {len(total.violations)} violations", flush=True)
    text = table(total, arguments, time.monotonic() - began)
    print(text)
    if arguments.out:
        arguments.out.write_text(text)
    sys.exit(bool(total.violations))


if __name__ == "__main__":
    main()
