"""A table history that follows a real server, and random definitions that compare the two."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

import pymysql

from connector.config.filters import Filters
from connector.log.transaction.batch import Rows, TransactionBatch
from connector.log.transaction.definition import VIEW, Definitions, Item, Redefined
from connector.log.transaction.layout import TableName
from connector.mysql.schema_history.table_history import TableHistory
from connector.mysql.server import connection as capture
from connector.mysql.server.dump import open_stream
from connector.mysql.server.snapshot_point import prepare_session
from connector.mysql.server.source_facts import read_facts
from connector.mysql.server.source_state import end_position
from connector.mysql.snapshot.information_schema import read_definitions
from connector.mysql.transforms.filters import Filter
from tests.support.binlog import images, reader_of_stream, source_of
from tests.support.definitions import OTHER, SCHEMA, Statements
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer


class Watched:
    """A server, a session that changes it, and a table history that follows.

    Args:
        server: a MySQL or a MariaDB.
        metadata: binlog_row_metadata; None: the server has no such variable.
    """

    def __init__(self, server: SqlServer, metadata: str | None = "MINIMAL") -> None:
        self.session = connect(server)
        self.cursor = self.session.cursor()
        self.metadata = metadata
        self.tell(metadata)
        self.run(
            f"DROP DATABASE IF EXISTS `{SCHEMA}`",
            f"DROP DATABASE IF EXISTS `{OTHER}`",
            f"CREATE DATABASE `{SCHEMA}` CHARACTER SET latin1",
            f"CREATE DATABASE `{OTHER}`",
            f"USE {SCHEMA}",
        )
        source = source_of(server)
        self.beside = capture.connect(source)
        prepare_session(self.beside, source)
        self.filter = Filter(Filters(do=(SCHEMA, OTHER)), unlogged_options=read_facts(self.beside).unlogged_options)
        self.known = self.dictionary()
        self.history = TableHistory(self.known, self.filter)
        self.reader = reader_of_stream(
            open_stream(source, end_position(self.beside)), self.filter, resolver=self.history
        )

    def tell(self, metadata: str | None) -> None:
        if metadata is not None:
            self.run(f"SET GLOBAL binlog_row_metadata = {metadata}")

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.cursor.execute(statement)

    def dictionary(self) -> Definitions:
        return read_definitions(self.beside, self.filter)

    def read(self) -> list[Item]:
        """Reads the new log of the server; its changes of definitions update `known`."""
        end = end_position(self.beside)
        found: list[Item] = []
        while self.reader.position != end:
            found += self.reader.read()
        for item in found:
            if isinstance(item, Redefined):
                self.known = self.known.after(item)
        return found

    def close(self) -> None:
        self.tell(self.metadata and "FULL")
        self.run(f"DROP DATABASE IF EXISTS `{SCHEMA}`", f"DROP DATABASE IF EXISTS `{OTHER}`")
        self.reader.close()
        self.beside.close()
        self.session.close()


def rows_of(found: Iterable[Item]) -> list[Rows]:
    return [
        change
        for item in found
        if isinstance(item, TransactionBatch)
        for change in item.changes
        if isinstance(change, Rows)
    ]


def known_of(found: Definitions) -> tuple[object, ...]:
    """The known tables without the reasons why a table is unknown."""
    unknown = {name for name, table in found.tables.items() if table.unknown}
    return {name: table for name, table in found.tables.items() if name not in unknown}, unknown, found.schemas


def walk(
    watched: Watched,
    statements: Statements,
    count: int,
    *,
    reasons: tuple[str, ...],
    said: Callable[[str], str] = str,
    passing: bool = False,
) -> tuple[int, int]:
    """Checks after each accepted statement that history and dictionary are equal, and rows have these layouts.

    Args:
        watched: the server and the history.
        statements: to choose from.
        count: number of statements to try.
        reasons: why a table may be unknown to the history; it is dropped then.
        said: form of a statement in this server's mode.
        passing: an unknown table may have been renamed without the history's knowledge.

    Returns:
        How many statements were taken, and how many changes of rows were compared.
    """
    taken = compared = 0
    for _ in range(count):
        sql = said(statements.one())
        try:
            watched.run(sql)
        except pymysql.MySQLError:
            continue
        taken += 1
        found = watched.read()
        unknown = {
            name: table.unknown for name, table in watched.known.tables.items() if table.unknown not in ("", VIEW)
        }
        unknown.pop(TableName(SCHEMA, "seq"), None)  # a sequence, which has rows and no definition
        assert all(any(reason in why for reason in reasons) for why in unknown.values()), (sql, unknown)
        gone = set(unknown)
        if unknown and passing:
            gone |= watched.dictionary().tables.keys() - watched.known.tables.keys()
        for name in gone:
            watched.run(said(f"DROP TABLE IF EXISTS `{name.schema}`.`{name.table.replace('`', '``')}`"))
        with suppress(pymysql.MySQLError):
            watched.run(f"REPLACE INTO {statements.any('t0', 't1')} () VALUES ()")
        found += watched.read()
        expected = watched.dictionary()
        assert known_of(watched.known) == known_of(expected), sql
        for change in rows_of(found):
            compared += 1
            assert change.layout == expected.tables[change.layout.name].layout
            assert all(len(image) == len(change.layout.columns) for row in images(change) for image in row if image)
    return taken, compared
