"""Marks parameters of a test as long: `make test` shows a promise once, `make test-all` in all its forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


def long(*params: Any) -> Iterator[Any]:
    """Give the parameters (a tuple: one set of several) the mark that `make test` leaves out."""
    for param in params:
        values = param if isinstance(param, tuple) else (param,)
        yield pytest.param(*values, marks=pytest.mark.long)
