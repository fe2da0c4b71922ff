"""Expects the error of a broken rule of the log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from connector.errors import ConnectorError, LogDamaged
from connector.log.rules import Rule


@contextmanager
def breaks(
    rule: Rule, error: type[ConnectorError] = LogDamaged, **where: object
) -> Iterator[pytest.ExceptionInfo[ConnectorError]]:
    """Expect that the block breaks a rule of the log.

    Args:
        rule: the rule.
        error: the error's class.
        where: fields that the error must have.
    """
    with pytest.raises(error) as raised:
        yield raised
    found = raised.value.where
    assert {name: found.get(name) for name in ("rule", *where)} == {"rule": rule, **where}
