"""Torn reads beside several writers: plain readers have them, readers by the snapshot have none (tests.bench.torn)."""

from __future__ import annotations

import psycopg
import pytest

from connector.targets.postgres import divided_commit
from tests.bench.torn import WRITERS, count
from tests.support.servers.environment import DatabaseServer

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

READS = 5_000


@pytest.fixture
def dsn(postgres_server: DatabaseServer) -> str:
    server = postgres_server
    base = f"postgresql://{server.user}:{server.password}@{server.host}:{server.port}"
    with psycopg.connect(f"{base}/postgres", autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS torn WITH (FORCE)")
        admin.execute("CREATE DATABASE torn ENCODING 'UTF8' TEMPLATE template0")
    return f"{base}/torn"


@pytest.mark.parametrize(("writers", "by_snapshot"), [(WRITERS, False), (WRITERS, True), (1, False), (1, True)])
def test_only_plain_reads_beside_several_writers_are_torn(
    dsn: str, monkeypatch: pytest.MonkeyPatch, writers: int, by_snapshot: bool
) -> None:
    monkeypatch.setattr(divided_commit, "DIVIDED_ROWS", 1)
    found = count(dsn, writers=writers, by_snapshot=by_snapshot, reads=READS)
    print(found)
    assert (found.torn > 0) == (writers > 1 and not by_snapshot)
    assert found.states > (2 if by_snapshot else 50)  # the target moved meanwhile
