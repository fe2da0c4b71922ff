"""The error types: their documentation and exit codes."""

from __future__ import annotations

import re

import pytest

from connector import errors

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.ConnectorError)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_documents_when_it_is_raised_and_if_retryable(kind: type[errors.ConnectorError]) -> None:
    text = kind.__doc__ or ""
    assert "Raised" in text.splitlines()[0]
    assert re.search(r"(^|\. )Retryable" if kind.retry else r"Not\s+retryable", text)


@pytest.mark.parametrize("kind", KINDS)
def test_every_exit_code_has_a_meaning(kind: type[errors.ConnectorError]) -> None:
    assert kind.exit_code in errors.EXIT_CODES
