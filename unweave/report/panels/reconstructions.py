"""Images of the data beside their reconstructions."""

from typing import Any

from unweave.report.images import inline_image, reconstructions
from unweave.report.panel import Panel
from unweave.report.views import RunView


def context(run: RunView) -> dict[str, Any]:
    return {"strips": [(name, inline_image(pixels)) for name, pixels in reconstructions(run.trained, seed=run.seed)]}


PANEL = Panel("reconstructions", "Reconstructions", "run", context, needs=("decoder",))
