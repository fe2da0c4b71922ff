"""Loads that lock a source whose commits wait for the producer are named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal

import pytest

from connector.config.snapshot import InitialLoad
from connector.config.source import Source
from connector.mysql.preflight.semi_sync import locking_loads


@pytest.mark.parametrize(
    ("mariadb", "gtid_mode", "lock", "why"),
    [
        (True, "", "none", "a MariaDB"),
        (False, "OFF", "none", "no GTIDs"),
        (False, "ON", "brief", "snapshot.lock: brief"),
        (False, "ON", "none", None),
    ],
)
def test_a_load_that_needs_the_lock_is_named_with_its_reason(
    mariadb: bool, gtid_mode: str, lock: Literal["none", "brief"], why: str | None
) -> None:
    facts: Any = SimpleNamespace(mariadb=mariadb, gtid_mode=gtid_mode)
    found = list(locking_loads(facts, Source(semi_sync=True, snapshot=InitialLoad(lock=lock))))
    assert len(found) == (why is not None)
    assert all(f"({why})" in one and "source.semi_sync: false" in one for one in found)
