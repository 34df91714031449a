"""Train every method for a few steps and write SHA-256 digests of the final weights; compare two such files.

The script uses only names exported by `unweave`, so PYTHONPATH may point at a checkout of another commit:

PYTHONPATH=/path/to/checkout python benchmarks/reliability/weights_digest.py --out old.json
python benchmarks/reliability/weights_digest.py --out new.json
python benchmarks/reliability/weights_digest.py --compare old.json new.json

Each method is trained once as a single run and once as a fleet of two seeds (strategy "batched"). The digest covers
dtype, shape and bytes of every tensor, not its name, so that renamed modules still compare equal.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

GRAPH = "q(z|x) q(y|z,x); p(x|y,z) p(z|y); labels: y; z: normal"
LABELS = "labels(n=100, factors=['shape'])"
GROUPS = "groups(by=['shape'], size=2)"
MATCH = "match(content=['shape'])"
F_GROUPS = "groups(by=['floor_hue', 'wall_hue'], size=8, distinct=True)"
# Method, its settings, supervision (None is the default of the method).
CASES: list[tuple[str, dict[str, Any], str | None]] = [
    ("vae", {}, None),
    ("beta_vae", {}, None),
    ("beta_vae", {"net": "locatello", "data": "rooms(size=16)"}, None),
    ("annealed_vae", {}, None),
    ("factor_vae", {}, None),
    ("factor_vae", {"one_batch": True}, None),
    ("beta_tcvae", {}, None),
    ("beta_tcvae", {"estimator": "mss", "alpha": 2.0, "gamma": 3.0}, None),
    ("beta_tcvae", {"semi_supervised": "xent", "latents": 6}, "labels(n=100)"),
    ("dip_vae_i", {}, None),
    ("dip_vae_ii", {}, None),
    ("info_vae", {}, None),
    ("info_vae", {"kernel": "rbf", "alpha": 0.5}, None),
    ("info_vae", {"divergence": "stein", "lambda_": 5.0}, None),
    ("info_vae", {"divergence": "adversarial", "lambda_": 2.0, "alpha": 0.5}, None),
    ("aae", {}, None),
    ("aae", {"encoder": "gaussian", "generator": "ratio"}, None),
    ("aae", {"prior": "mixture", "generator": "minimax"}, None),
    ("aae", {"prior": "swiss_roll"}, None),
    ("aae_cluster", {}, None),
    ("aae_reduce", {}, None),
    ("aae_semi", {}, LABELS),
    ("ada_gvae", {}, None),
    ("ada_gvae", {"known_k": True}, None),
    ("ada_gvae", {"symmetric": True}, None),
    ("ada_ml_vae", {}, None),
    ("ada_ml_vae", {"known_k": True}, None),
    ("ml_vae", {}, GROUPS),
    ("ml_vae", {"content": 1, "per_member": True}, GROUPS),
    ("gvae", {}, GROUPS),
    ("group_tcvae", {}, MATCH),
    ("group_tcvae", {"content": 1, "level": "inter_intra_one", "beta": 20.0}, MATCH),
    ("f_statistic", {}, F_GROUPS),
    ("triplet", {}, "triplets(by=['floor_hue'])"),
    ("m1", {}, LABELS),
    ("m2", {}, LABELS),
    ("m1_m2", {}, LABELS),
    ("generalized_m2", {}, LABELS),
    ("generalized_m2", {"graph": GRAPH, "discrete": "relaxed", "samples": 2}, LABELS),
]


def case_name(method: str, settings: dict[str, Any]) -> str:
    return " ".join([method, *(f"{name}={value}".replace(GRAPH, "...") for name, value in settings.items())])


def digest(folder: Path) -> dict[str, str]:
    """Return the digest of each tensor of a finished run, and under "weights" that of all of them."""
    from safetensors.torch import load_file

    tensors = {}
    for name, tensor in load_file(folder / "weights.safetensors").items():
        head = f"{tensor.dtype} {list(tensor.shape)} ".encode()
        tensors[name] = hashlib.sha256(head + tensor.contiguous().numpy().tobytes()).hexdigest()[:16]
    return {"weights": hashlib.sha256(" ".join(sorted(tensors.values())).encode()).hexdigest(), **tensors}


def digests(method: str, settings: dict[str, Any], supervision: str | None, steps: int) -> dict[str, dict[str, str]]:
    """Return the digests of a single run and of both members of a fleet."""
    import unweave as uw

    base = {"net": "small", "latents": 4, "data": "rooms(size=8)", "steps": steps, "batch": 8, "lr": 1e-3, **settings}
    base |= {"supervision": supervision, "device": "cpu", "engine": "loop", "log_every": 10}
    with tempfile.TemporaryDirectory() as temporary:
        out = Path(temporary)
        uw.train(method, **base, seed=0, out=out / "single")
        runs = [{"method": method, **base, "seed": seed, "out": out / f"fleet{seed}"} for seed in (0, 1)]
        uw.fit(runs, strategy="batched")
        return {name: digest(out / name) for name in ("single", "fleet0", "fleet1")}


def measure(out: Path, steps: int, methods: list[str]) -> None:
    import torch

    import unweave as uw

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"package: {Path(uw.__file__).parent}; torch {torch.__version__}", flush=True)
    results: dict[str, Any] = {}
    for method, settings, supervision in CASES:
        if methods and method not in methods:
            continue
        name, start = case_name(method, settings), time.monotonic()
        try:
            results[name] = digests(method, settings, supervision, steps)
        except Exception as error:  # a broken method must not hide the others
            results[name] = {"error": f"{type(error).__name__}: {error}"}
        weights = [d["weights"][:12] for d in results[name].values() if isinstance(d, dict)]
        print(f"{name:60} {time.monotonic() - start:5.1f} s  {' '.join(weights) or results[name]['error']}", flush=True)
        out.write_text(json.dumps(results, indent=1))


def compare(first: Path, second: Path) -> int:
    """Print one line per case; return the number of cases that differ."""
    old, new = json.loads(first.read_text()), json.loads(second.read_text())
    different = 0
    for name in sorted(old.keys() | new.keys()):
        ours, theirs = old.get(name, {"error": "not measured"}), new.get(name, {"error": "not measured"})
        if errors := [side["error"] for side in (ours, theirs) if "error" in side]:
            verdict = "ERROR " + " | ".join(errors)
        else:
            runs = [run for run in ours if ours[run]["weights"] != theirs[run]["weights"]]
            verdict = f"DIFFERENT in {', '.join(runs)}" if runs else "equal"
        different += verdict != "equal"
        print(f"{name:60} {verdict}")
    print(f"{different} of {len(old.keys() | new.keys())} cases differ")
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("weights_digest.json"), help="JSON file to write")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--methods", default="", help="comma-separated names; default all")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"), help="compare two JSON files")
    arguments = parser.parse_args()
    if arguments.compare:
        sys.exit(min(compare(*arguments.compare), 1))
    measure(arguments.out, arguments.steps, [name for name in arguments.methods.split(",") if name])


if __name__ == "__main__":
    main()
