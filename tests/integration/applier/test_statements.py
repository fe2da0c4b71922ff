"""Changes that a MySQL logged as statements, from its binary log to a MySQL that executes them.

From the server's own log through our reader, encoder and apply core. One server is the source, and then, without the
database, the target.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from pydantic import SecretStr

from connector.applier.core import ApplyCore
from connector.applier.partition_buffers import PartitionBuffers
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.source import Source as SourceSection
from connector.log.compact.scan import Messages
from connector.log.format.message import Message
from connector.log.ids import NO_SEQNO
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.batch import Statement, TransactionBatch
from connector.log.transaction.position import AfterGtids
from connector.mysql.server.connection import session
from connector.mysql.server.source_facts import read_facts
from connector.mysql.server.source_state import gtid_executed
from connector.mysql.transforms.filters import Filter
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from connector.targets.open import open_target
from connector.targets.target_schema import Excluded
from tests.integration.applier.test_row_images import ended, messages
from tests.support.binlog import read_from
from tests.support.fragments import batch
from tests.support.loading import a_database
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer
from tests.support.statement_workload import Workload, tables
from tests.unit.applier.test_core import TOPIC, LargeMessages, Ranges, history

SERVICE = "statements"
SETTINGS = {
    **MYSQL_FAST,
    "performance_schema": "ON",
    "local_infile": "ON",
    "log_bin_trust_function_creators": "ON",
}


@pytest.fixture(scope="module")
def server(servers_folder: Path) -> Iterator[SqlServer]:
    with MySqlServer(servers_folder / "statements", settings=SETTINGS, die_with_parent=True) as running:
        yield running


class Log:
    """A database whose log is read, and then applied to the same server without it.

    Args:
        server: the source, later the target.
        source: captures the database.
        name: the database.
    """

    def __init__(self, server: SqlServer, source: SourceSection, name: str) -> None:
        self.server = server
        self.name = name
        self._source = source.model_copy(update={"statements": "keep"})
        self._connection = connect(server, local_infile=True, database=name)
        with session(self._source) as beside:
            self._start = gtid_executed(beside) or ""
            self._facts = read_facts(beside)
        self.options = Target(
            url=SecretStr(f"mysql://{server.user}:{quote(server.password)}@{server.host}:{server.port}"),
            statements="execute",
        )

    def run(self, *statements: str) -> None:
        for statement in statements:
            with self._connection.cursor() as cursor:
                cursor.execute(statement)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def read(self) -> list[TransactionBatch]:
        """The log since the start; then the source forgets the database."""
        self.run(f"USE {self.name}", "CREATE TABLE the_end (a INT)")
        filters = Filter.of(self._source, 0, {}, self._facts.system_time_zone)
        found = read_from(self.server, AfterGtids(self._start), ended, filters=filters, batch_bytes=20_000)
        return [piece for piece in found if isinstance(piece, TransactionBatch)]

    def forget(self) -> None:
        self.run(
            "SET sql_log_bin = 0", f"DROP DATABASE {self.name}", "DROP DATABASE IF EXISTS thl", "SET sql_log_bin = 1"
        )

    def apply(self, pieces: list[TransactionBatch], draw: random.Random | None = None, **options: Any) -> None:
        values, last = messages(pieces)
        target = open_target(self.options.model_copy(update=options), SystemClock())
        try:
            position = target.claim(SERVICE)
            if exclude := options.get("exclude"):
                target.exclude({exclude: Excluded(since=position.seqno, at=0, by="t", reason="t")})
            known = history([0], last)
            core = ApplyCore(
                target,
                position,
                EventSequencer[Message, Messages](topic=TOPIC, partitions=1, position=position, history=known),
                PartitionBuffers(TOPIC, LargeMessages(()), Ranges(), statements=True),
                log_id=known.log_id,
                gtid_set=known.epochs[0].gtid_set,
                topic=TOPIC,
                clock=SystemClock(),
            )
            at = 0 if position.seqno == NO_SEQNO else next(iter(position.offsets.values()))
            while at < len(values):
                size = 7 if draw is None else draw.choice([1, 3, 20, 100])
                core.accept([batch(values[at : at + size], offset=at)])
                at += size
            assert core.position.seqno == last
        finally:
            target.close()


@pytest.fixture
def log(server: SqlServer) -> Iterator[Log]:
    with a_database(server, "said") as (source, name):
        made = Log(server, source, name)
        yield made
        made._connection.close()
        server.run_sql("SET sql_log_bin = 0; DROP DATABASE IF EXISTS thl")


@pytest.mark.parametrize("seed", range(3))
def test_random_statements_leave_equal_tables(log: Log, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    workload = Workload(log.server, log.name, draw, tmp_path)
    workload.write(200)
    workload.close()
    expected = tables(log.server, log.name)
    pieces = log.read()
    statements = [change for piece in pieces for change in piece.changes if isinstance(change, Statement)]
    names = {name for change in statements for name in change.options}
    assert {"insert_id", "rand_seed1", "last_insert_id", "time_zone", "load_data_block", "@s"} <= names
    assert any(not isinstance(change, Statement) for piece in pieces for change in piece.changes)
    log.forget()
    log.apply(pieces, draw)
    found = tables(log.server, log.name)
    assert found.pop("the_end")[1] == []
    assert {name: definition for name, (definition, _) in found.items()} == {
        name: definition for name, (definition, _) in expected.items()
    }
    for name, (_, rows) in expected.items():
        assert found[name][1] == rows, name
    assert sum(len(rows) for _, rows in expected.values()) > 500
