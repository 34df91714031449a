"""Images are encoded in calls whose memory does not depend on the number or the size of the images."""

import subprocess
import sys

import unweave as uw

PROGRAM = """
import resource, sys, tempfile
import torch
import unweave as uw

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

torch.set_num_threads(1)
folder = tempfile.mkdtemp()
runs = [
    uw.train("vae", "sprites", net="small", steps=1, batch=4, seed=seed, device="cpu", out=f"{folder}/{seed}")
    for seed in range(2)
]
before = peak()
uw.score_runs(runs, metrics=["sap"], **{sys.argv[1]: int(sys.argv[2])})
print(peak() - before)
"""


def test_memory_of_a_comparison():
    """(A15) 750 images of 64 x 64 pixels; all of them in one call took 0.6 GB."""
    keyword = "num_samples" if hasattr(uw, "TrainedModel") else "rows"  # its earlier name
    run = subprocess.run([sys.executable, "-c", PROGRAM, keyword, "500"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) < 0.4e9
