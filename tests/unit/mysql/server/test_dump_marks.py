"""By which locks a MariaDB tells a producer's dump from others; tests/integration/mariadb has the server itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from connector.mysql.server import mariadb_state
from connector.mysql.server.mariadb_state import MARKS, is_dumped, mark_dump


class Locks:
    """The user-level locks of a server: name → session."""

    def __init__(self) -> None:
        self.held: dict[str, int] = {}

    def query_one(self, session: Any, sql: str, names: Sequence[str]) -> dict[str, Any]:
        if "GET_LOCK" in sql:
            (name,) = names
            return {"got": int(self.held.setdefault(name, session) == session)}
        assert len(re.findall("IS_USED_LOCK", sql)) == len(names)
        return {f"IS_USED_LOCK('{name}')": self.held.get(name) for name in names}

    def end(self, session: int) -> None:
        self.held = {name: one for name, one in self.held.items() if one != session}


@pytest.fixture
def locks(monkeypatch: pytest.MonkeyPatch) -> Locks:
    made = Locks()
    monkeypatch.setattr(mariadb_state, "query_one", made.query_one)
    return made


def marked(session: int, server_id: int) -> None:
    mark_dump(session, server_id)  # type: ignore[arg-type]


def dumped(server_id: int) -> bool:
    return is_dumped(0, server_id)  # type: ignore[arg-type]


def test_dump_of_another_server_id_is_not_the_producers(locks: Locks) -> None:
    marked(1, 7412)
    assert (dumped(7411), dumped(7412)) == (False, True)


def test_newer_dump_counts_once_the_older_one_has_ended(locks: Locks) -> None:
    marked(1, 7411)
    marked(2, 7411)  # ends the older one, which still has its lock
    locks.end(1)
    assert dumped(7411)
    marked(3, 7411)
    locks.end(2)
    assert dumped(7411)
    locks.end(3)
    assert not dumped(7411)


def test_a_dump_that_finds_no_free_lock_goes_on_without(locks: Locks) -> None:
    for session in range(MARKS + 1):
        marked(session, 7411)
    assert set(locks.held.values()) == set(range(MARKS))
