"""Schedules as functions of the step, evaluated inside the training step."""

from torch import Tensor


def linear(step: Tensor, start: Tensor, end: Tensor, steps: Tensor, begin: Tensor | float = 0.0) -> Tensor:
    """Return `start` until `begin`, then a linear schedule that reaches `end` after `steps` more steps."""
    done = ((step - begin) / steps).clamp(0.0, 1.0)
    return start + (end - start) * done
