"""The contract of the targets, kept by users that have the rights of docker/grants and no others.

Long: the code is that of the targets' own runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.contract.mysql_place import MySqlPlace
from tests.contract.target_ddl import *  # noqa: F403
from tests.contract.target_load import *  # noqa: F403
from tests.contract.target_suite import *  # noqa: F403
from tests.contract.target_transactions import *  # noqa: F403
from tests.contract.test_target_postgres import PostgresPlace
from tests.support.grants import statements
from tests.support.servers.environment import DatabaseServer, SqlServer

pytestmark = [pytest.mark.servers, pytest.mark.long]
# Triggers of somebody else there write to a table on which the applier has no rights.
TRIGGERS_OF_OTHERS = (
    "test_rows_of_a_load_fire_no_trigger_of_deletes",
    "test_rows_are_replaced_in_place_without_a_unique_index",
)
CREATES_SCHEMAS = ("test_drop_database_takes_its_tables",)  # which an administrator does in the section `schemas`
PASSWORD = "only this"
SCHEMAS = ("shop", "attic")  # that the contract's statements name


class LimitedMySqlPlace(MySqlPlace):
    """Its targets are opened as a user with the rights of a file."""

    def __init__(self, server: SqlServer, product: str) -> None:
        super().__init__(server, lacks=("vector",) if product == "mariadb" else ())
        self.run("DROP USER IF EXISTS limited")
        self.run(f"CREATE USER limited IDENTIFIED BY '{PASSWORD}'")
        names = ["tables", "ddl once"]
        for schema in SCHEMAS:
            for statement in statements(f"{product}-target.sql", *names, user="limited", schema=schema):
                self.run(statement)
        self.url = f"mysql://limited:{quote(PASSWORD)}@{server.host}:{server.port}"

    def close(self) -> None:
        super().close()
        with self.connect() as admin, admin.cursor() as cursor:
            cursor.execute("DROP USER limited")


def limited_postgres(server: DatabaseServer, section: str) -> Iterator[PostgresPlace]:
    """A database whose targets are opened as a role with the rights of a section."""
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute("DROP DATABASE IF EXISTS limited WITH (FORCE)")
        admin.execute("DROP ROLE IF EXISTS limited")
        admin.execute("CREATE DATABASE limited")
        url = make_conninfo(server.dsn, dbname="limited")
        place = PostgresPlace(url)
        names = ("user", section)
        for statement in statements("postgres-target.sql", *names, user="limited", password=PASSWORD, schema="limited"):
            place.run(statement)
        if section == "schemas":
            place.run("CREATE SCHEMA attic AUTHORIZATION limited")
        place.url = make_conninfo(url, user="limited", password=PASSWORD)
        yield place
        for target in place.opened:
            target.close()
        place.reader.close()
        admin.execute("DROP DATABASE limited WITH (FORCE)")
        admin.execute("DROP ROLE limited")


@pytest.fixture(params=["mysql", "mariadb", "postgres database", "postgres schemas"])
def place(request: pytest.FixtureRequest) -> Iterator[MySqlPlace | PostgresPlace]:
    product, _, section = request.param.partition(" ")
    name = request.node.originalname
    if (section and name in TRIGGERS_OF_OTHERS) or (section == "schemas" and name in CREATES_SCHEMAS):
        pytest.skip("it needs rights that the section does not give")
    server = request.getfixturevalue(f"{product}_server")
    if section:
        yield from limited_postgres(server, section)
        return
    made = LimitedMySqlPlace(server, product)
    yield made
    made.close()
