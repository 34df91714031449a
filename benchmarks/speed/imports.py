"""Time of imports and of commands that only print, as multiples of `import torch`.

CPU seconds (user and system) of a new process, the smallest of several repetitions, in turn with those of torch.

    OMP_NUM_THREADS=1 python benchmarks/speed/imports.py
"""

import argparse
import platform
import resource
import subprocess
import sys

from unweave.runs import environment

IMPORTS = ("unweave", "unweave.train", "unweave.load", "unweave.load_data", "unweave.evaluate", "unweave.Unweaver")
COMMANDS = (
    "--help",
    "train --help",
    "evaluate --help",
    "report --help",
    "compare --help",
    "encode --help",
    "predict --help",
    "export --help",
    "demo --help",
    "list --help",
    "info --help",
    "data list --help",
    "data inspect --help",
    "study run --help",
    "study table --help",
    "list methods",
    "list metrics",
    "list data",
    "info factor_vae",
)


def seconds(arguments: list[str]) -> float:
    """Return the CPU seconds of a new Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    repetitions = range(parser.parse_args().repetitions)
    cases = {"import torch": ["-c", "import torch"]}
    cases |= {name: ["-c", f"import unweave; {name}"] for name in IMPORTS}
    cases |= {f"unweave {words}": ["-m", "unweave", *words.split()] for words in COMMANDS}
    times = {name: [] for name in cases}
    for _ in repetitions:
        for name, arguments in cases.items():
            times[name].append(seconds(arguments))
    torch = min(times["import torch"])
    facts = environment()
    print(f"{platform.processor() or platform.machine()}, Python {facts['python']}, torch {facts['torch']},", end=" ")
    print(f"unweave {facts['git']}\n\n| | CPU seconds | x torch |\n| --- | ---: | ---: |")
    for name, found in times.items():
        print(f"| `{name}` | {min(found):.2f} | {min(found) / torch:.2f} |")


if __name__ == "__main__":
    main()
