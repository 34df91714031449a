"""Assertion that a call raises a `UserError`, by the error's fields instead of its sentence."""

from contextlib import contextmanager

import pytest

from unweave.errors import UserError


@contextmanager
def raises(argument, *, value=..., accepted=...):
    """Assert that the block raises a UserError about `argument` whose message is one line and names the value.

    `accepted` is the text, or choices that must be among the accepted ones. Yields pytest's ExceptionInfo.
    """
    with pytest.raises(UserError) as caught:
        yield caught
    error, message = caught.value, str(caught.value)
    assert error.argument == argument, message
    assert message and "\n" not in message, message
    if value is not ...:
        assert error.value == value, message
        assert str(value) in message or repr(value) in message, message
    if isinstance(accepted, str):
        assert error.accepted == accepted, message
    elif accepted is not ...:
        assert set(accepted) <= set(error.accepted), message
