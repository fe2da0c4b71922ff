"""The answer to the COMMIT of a claim is lost: the target has the claim, and its applier does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

from connector.applier.claimant import Claimant
from connector.clock import SystemClock
from connector.errors import Fenced, TargetUnavailable
from connector.targets.mysql.target import MySqlTarget
from connector.targets.postgres.target import PostgresTarget
from connector.targets.target import TargetDatabase
from tests.support.proxy import Cut, Proxy, Way
from tests.support.servers.environment import DatabaseServer, SqlServer

pytestmark = pytest.mark.servers


@dataclass
class Place:
    """A server behind a proxy.

    Args:
        proxy: before it.
        commit: the bytes of a COMMIT.
        open: opens a target of a service of its own, at a port.
        direct: the server's port.
    """

    proxy: Proxy
    commit: bytes
    open: Callable[[int], TargetDatabase]
    direct: int


@pytest.fixture(params=["postgres", "mysql", "mariadb"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    server: DatabaseServer = request.getfixturevalue(f"{request.param}_server")
    with Proxy((server.host, server.port)) as proxy:
        if request.param == "postgres":
            with psycopg.connect(server.dsn, autocommit=True) as admin:
                admin.execute("CREATE DATABASE lost_claims")
                where = make_conninfo(server.dsn, dbname="lost_claims", sslmode="disable")
                yield Place(
                    proxy,
                    b"Q\x00\x00\x00\x0bCOMMIT\x00",
                    lambda port: PostgresTarget(SecretStr(make_conninfo(where, port=port)), SystemClock()),
                    server.port,
                )
                admin.execute("DROP DATABASE lost_claims WITH (FORCE)")
        else:
            mysql: SqlServer = request.getfixturevalue(f"{request.param}_server")
            mysql.run_sql("DROP DATABASE IF EXISTS thl")
            user = f"{server.user}:{quote(server.password)}"
            yield Place(
                proxy,
                b"\x07\x00\x00\x00\x03COMMIT",
                lambda port: MySqlTarget(SecretStr(f"mysql://{user}@{mysql.host}:{port}"), SystemClock()),
                server.port,
            )
            mysql.run_sql("DROP DATABASE thl")


def test_its_applier_claims_again_and_others_fence_it(place: Place) -> None:
    ours, other = Claimant(), Claimant()
    with closing(place.open(place.direct)) as target:
        ours.claim(target, "shop")
        first = target.token
    with closing(place.open(place.proxy.port)) as target:
        place.proxy.arm(Cut(Way.UP, "lost answer", at=lambda chunk: chunk == place.commit))
        with pytest.raises(TargetUnavailable):
            ours.claim(target, "shop")
    assert place.proxy.cuts == 1
    with closing(place.open(place.direct)) as target:
        ours.claim(target, "shop")
        assert target.token == first + 2  # the lost one counts
    with closing(place.open(place.direct)) as target:
        other.claim(target, "shop")
    with closing(place.open(place.direct)) as target, pytest.raises(Fenced):
        ours.claim(target, "shop")
