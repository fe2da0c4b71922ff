"""A record of the control, position or prepared topic: JSON, which may be anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from connector.errors import LogDamaged

# What reading JSON, and taking it to pieces, raises where it is not what we write: too deep, too long, of other types.
WRONG: Final = (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)


@contextmanager
def reading(what: str, **where: object) -> Iterator[None]:
    """Turn whatever is wrong with a record into LogDamaged.

    Args:
        what: it is, for the error.
        where: it stands, or how it begins.
    """
    try:
        yield
    except WRONG as error:
        damaged = LogDamaged(f"{what} cannot be read: {str(error)[:200]}")
        damaged.where = where
        raise damaged from error
