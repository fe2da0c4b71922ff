"""Loads that lock a source whose commits wait for the producer are named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from connector.mysql.preflight.semi_sync import locking_loads


@pytest.mark.parametrize(
    ("mariadb", "gtid_mode", "locks"), [(True, "", False), (False, "OFF", True), (False, "ON", False)]
)
def test_loads_of_a_mysql_without_gtids_are_named(mariadb: bool, gtid_mode: str, locks: bool) -> None:
    facts: Any = SimpleNamespace(mariadb=mariadb, gtid_mode=gtid_mode)
    found = list(locking_loads(facts))
    assert len(found) == locks
    assert all("source.semi_sync: false" in one for one in found)
