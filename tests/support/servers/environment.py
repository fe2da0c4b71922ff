"""The servers of the tests: the sandbox's own, or with `THL_TEST_STACK=compose` those of the compose file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from connector.errors import SandboxError
from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.postgres import PostgresServer
from connector.sandbox.settings import MYSQL_FAST
from tests.support.servers import compose

VARIABLE = "THL_TEST_STACK"


class Restartable(Protocol):
    """A server that tests stop and start; see `server.Server`."""

    def start(self) -> None:
        """Start it and wait until it answers."""
        ...

    def stop(self) -> None:
        """End it cleanly."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...


class DatabaseServer(Restartable, Protocol):
    """The address and the administrator of a database."""

    @property
    def host(self) -> str:
        """The address on which it listens."""
        ...

    @property
    def port(self) -> int:
        """Its TCP port."""
        ...

    @property
    def user(self) -> str:
        """The administrator's name."""
        ...

    @property
    def password(self) -> str:
        """The administrator's password."""
        ...

    @property
    def dsn(self) -> str:
        """The administrator's address."""
        ...


class SqlServer(DatabaseServer, Protocol):
    """A database with a command-line client."""

    def run_sql(self, sql: str, *, database: str = "") -> str:
        """Run statements as the administrator; return tab-separated output."""
        ...


class Broker(Restartable, Protocol):
    """A Kafka broker."""

    @property
    def bootstrap(self) -> str:
        """The address for `bootstrap.servers`."""
        ...


def mysql_for_tests(folder: Path, settings: Mapping[str, str] = MYSQL_FAST) -> AbstractContextManager[SqlServer]:
    """MySQL for as long as the context lasts."""
    if _compose():
        return compose.MYSQL
    return MySqlServer(folder, settings=settings, die_with_parent=True)


def mariadb_for_tests(folder: Path) -> AbstractContextManager[SqlServer]:
    """MariaDB for as long as the context lasts."""
    return compose.MARIADB if _compose() else MariaDbServer(folder, settings=MYSQL_FAST, die_with_parent=True)


def postgres_for_tests(folder: Path) -> AbstractContextManager[DatabaseServer]:
    """PostgreSQL for as long as the context lasts."""
    return compose.POSTGRES if _compose() else PostgresServer(folder, die_with_parent=True)


def kafka_for_tests(folder: Path) -> AbstractContextManager[Broker]:
    """Kafka for as long as the context lasts."""
    return compose.KAFKA if _compose() else KafkaBroker(folder, die_with_parent=True)


def _compose() -> bool:
    chosen = os.environ.get(VARIABLE, "sandbox")
    if chosen not in {"sandbox", "compose"}:
        raise SandboxError(
            "an unknown stack for the tests: neither sandbox nor compose", variable=VARIABLE, stack=chosen
        )
    return chosen == "compose"
