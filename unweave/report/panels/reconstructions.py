"""Images of the data beside their reconstructions."""

from typing import Any

from unweave.report.images import picture
from unweave.report.images import reconstructions as reconstruct
from unweave.report.panel import Panel
from unweave.report.views import RunView


def context(run: RunView) -> dict[str, Any]:
    strips = reconstruct(run.trained, seed=run.seed)
    return {"strips": [(name, picture(pixels)) for name, pixels in strips]}


PANEL = Panel("reconstructions", "Reconstructions", "run", context, needs=("decoder",))
