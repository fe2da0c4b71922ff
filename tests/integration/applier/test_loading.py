"""Loads of tables among a stream with real Kafka, Spark and PostgreSQL: what is loaded equals the source at the end."""

from __future__ import annotations

import signal
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import psycopg
import pytest
import yaml
from pydantic import SecretStr

from connector.applier.applier import Applier
from connector.applier.partition_buffers import PartitionBuffers
from connector.applier.skips import ExcludedTables
from connector.clock import SystemClock
from connector.config.model import Config
from connector.fetching.jars import spark_kafka_jars
from connector.log.compact.segment import Segment, Unread
from connector.log.ids import UNKNOWN_SHARD, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.schema import read_fragment
from connector.spark.session import SparkRun
from connector.status.collect import collect
from connector.status.report import End, LagLimits, ServiceState
from tests.support.apply_process import THL, Process
from tests.support.fragments import change, record, statement
from tests.support.log_writer import LogWriter

COLUMNS = ("id", "v", "mail")
KEYED = "(id INT PRIMARY KEY, v INT, mail INT)"
TABLES = {"orders": KEYED, "fresh": KEYED, "poor": KEYED, "bare": "(id INT, v INT, mail INT)"}
KEYS = 200
CHUNK = 40
BATCH_MESSAGES = 50
ONLY_ON_TARGET = 1000

Row = tuple[int, int, int]


class Source:
    """Tables that a stream changes at random while they are loaded, and the log of both."""

    def __init__(self, log: LogWriter, random: Random) -> None:
        self.random = random
        self.rows: dict[str, dict[int, Row]] = {"orders": {}, "fresh": {}, "poor": {}}
        self.bare: list[Row] = []
        self.targets: tuple[str, ...] = ()  # of loads
        self._log = log
        self._records: list[dict[str, Any]] = []
        self._barrier = -1

    @property
    def last(self) -> int:
        return self._log.seqno + len(self._records)

    def flush(self) -> int:
        """Write what there is; return the last seqno."""
        self._log.events(self._records)
        self._records = []
        return self._log.seqno

    def sql(self, *statements: str) -> None:
        self._add([statement(sql) for sql in statements], kind="ddl", shard=UNKNOWN_SHARD)
        self._barrier = self.last

    def event(self, *changes: dict[str, Any]) -> None:
        self._add(list(changes))

    def load(self, table: str, part: Part, *changes: dict[str, Any]) -> None:
        metadata = LoadEvent("l1", part, TableName("shop", table), self.targets).metadata()
        shard = "shop" if part is Part.ROWS else UNKNOWN_SHARD
        self._add(list(changes), kind="load", gtid=None, metadata=metadata, shard=shard)
        if part is not Part.ROWS:
            self._barrier = self.last

    def begin(self, table: str) -> None:
        created = [statement("CREATE DATABASE IF NOT EXISTS `shop`", ""), create(table)]
        self.load(table, Part.BEGIN, *created)

    def read(self, table: str, first: int) -> None:
        """A chunk, now and then twice."""
        rows = [self.rows[table][key] for key in range(first, first + CHUNK) if key in self.rows[table]]
        for _ in range(self.random.choice((1, 1, 1, 2))):
            self.load(table, Part.ROWS, changed("read", table, *((None, row) for row in rows)))

    def stream(self, events: int, *tables: str) -> None:
        """Transactions of some changes each."""
        for _ in range(events):
            changes = [one for table in tables for _ in range(3) for one in self._change(table)]
            old, new = (self.random.randrange(5), 1, 1), (self.random.randrange(5), 2, 2)
            changes.append(changed("insert", "bare", (None, new), key=False))
            self.bare.append(new)
            if old in self.bare:
                changes.append(changed("delete", "bare", (old, None), key=False))
                self.bare.remove(old)
            self.event(*changes)

    def _change(self, table: str) -> list[dict[str, Any]]:
        rows, random = self.rows[table], self.random
        key, other, value = random.randrange(KEYS), random.randrange(KEYS), random.randrange(1 << 30)
        match random.choice("iiudks"):
            case "i" if key not in rows:
                rows[key] = (key, value, self._mail())
                return [changed("insert", table, (None, rows[key]))]
            case "u" if key in rows:  # a partial image: the key, and what changes
                rows[key] = (key, value, rows[key][2])
                present = {"before_present": b"\1", "after_present": b"\3"}
                return [changed("update", table, ((key,), (key, value))) | present]
            case "d" if key in rows:
                return [changed("delete", table, (rows.pop(key), None))]
            case "k" if key in rows and other not in rows:
                old = rows.pop(key)
                rows[other] = (other, value, old[2])
                return [changed("update", table, (old, rows[other]))]
            case "s" if key in rows and other in rows and key != other:
                one, two = rows[key], rows[other]
                rows[key], rows[other] = (key, one[1], two[2]), (other, two[1], one[2])
                pairs = (one, (key, one[1], -1)), (two, rows[other]), ((key, one[1], -1), rows[key])
                return [changed("update", table, pair) for pair in pairs]
        return []

    def _mail(self) -> int:
        """A value that no other row has, but often one that only the target has."""
        taken = {row[2] for rows in self.rows.values() for row in rows.values()}
        return next(mail for mail in iter(lambda: self.random.randrange(3 * ONLY_ON_TARGET), None) if mail not in taken)

    def _add(self, changes: list[dict[str, Any]], **fields: Any) -> None:
        self._records.append(record(self.last + 1, changes, last_barrier=self._barrier, **fields))


def create(table: str) -> dict[str, Any]:
    return statement(f"CREATE TABLE {table} {TABLES[table]}")


def changed(action: str, table: str, *rows: Any, key: bool = True) -> dict[str, Any]:
    return change(action, rows, table=table, columns=COLUMNS, key=(0,) if key else ())


def apply(config: Config, spark: SparkRun, until: int) -> None:
    assert Applier(config, spark, SystemClock(), Event(), until=Seqno(until)).run() is not None


def query(config: Config, sql: str) -> list[Any]:
    with psycopg.connect(config.target.url.get_secret_value(), autocommit=True) as reader:
        cursor = reader.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


def rows_of(config: Config, table: str) -> list[Row]:
    return query(config, f"SELECT id, v, mail FROM shop.{table} ORDER BY 1, 2, 3")


def differing_target(config: Config, spark: SparkRun, source: Source) -> None:
    """A target that differs from the source in `orders` and `bare`, and has set `poor` aside."""
    source.sql("CREATE DATABASE shop", *(create(table)["sql"] for table in ("orders", "poor", "bare")))
    source.stream(20, "orders", "poor")
    apply(config, spark, source.flush())
    query(config, f"INSERT INTO shop.orders SELECT 5000 + n, n, 2 * n FROM generate_series(1, {ONLY_ON_TARGET}) n "
          "WHERE NOT EXISTS (SELECT FROM shop.orders WHERE mail = 2 * n)")  # fmt: skip
    query(config, "DELETE FROM shop.orders WHERE id % 3 = 0")
    query(config, "UPDATE shop.orders SET v = -1 WHERE id % 3 = 1")
    query(config, "CREATE UNIQUE INDEX by_user ON shop.orders (mail)")
    query(config, "INSERT INTO shop.bare VALUES (7, 7, 7)")
    source.event(changed("update", "poor", ((9000, 0, 0), (9000, 1, 1))))
    apply(config, spark, source.flush())
    assert query(config, "SELECT table_name FROM thl.thl_excluded") == [("poor",)]


def loads(source: Source) -> tuple[int, int]:
    """Load all tables in chunks between the stream's events; return an event between chunks, and the last end."""
    source.begin("bare")
    source.stream(3)
    whole = [(None, row) for row in source.bare]
    source.load("bare", Part.WHOLE, changed("read", "bare", *whole, key=False))
    source.load("bare", Part.END)
    for key in range(0, KEYS, 2):
        mail = source._mail()
        source.rows["fresh"][key] = (key, key, mail)
    tables = ("orders", "fresh", "poor")
    for table in tables:
        source.begin(table)
    between = 0
    for first in range(0, KEYS, CHUNK):
        source.stream(4, *tables)
        for table in tables:
            source.read(table, first)
        between = between or source.last
    source.stream(4, *tables)
    for table in reversed(tables):  # that of `orders`, which has marks, comes last
        source.load(table, Part.END)
    end = source.last
    source.stream(10, *tables)
    return between, end


def assert_equal(config: Config, source: Source) -> None:
    found = {table: rows_of(config, table) for table in source.rows}
    assert found == {table: sorted(rows.values()) for table, rows in source.rows.items()}
    assert rows_of(config, "bare") == sorted(source.bare)
    (position,) = query(config, "SELECT seqno, consistent, schema_version FROM thl.thl_position")
    assert position == (source.last, True, 1)
    assert query(config, "SELECT * FROM thl.thl_loading") == []
    assert query(config, "SELECT * FROM thl.thl_excluded") == []
    assert query(config, "SELECT tablename FROM pg_tables WHERE tablename LIKE 'thl_marks_%'") == []
    assert query(config, "SELECT because FROM thl.thl_inconsistent_because") == []
    assert [seqno for (seqno,) in query(config, "SELECT seqno FROM thl.thl_applied ORDER BY 1")] == [
        *range(source.last + 1)
    ]


def test_loaded_tables_equal_the_source_and_status_names_them(config: Config, spark: SparkRun) -> None:
    log = LogWriter(config)
    log.online()
    source = Source(log, Random(16))
    differing_target(config, spark, source)
    between, _ = loads(source)
    source.flush()
    apply(config, spark, between)
    status = collect(config, LagLimits(), ends=frozenset({End.TARGET})).applier
    assert [one.split(" since ")[0] for one in status.loading_tables] == ["shop.fresh", "shop.orders", "shop.poor"]
    assert (status.consistent, status.inconsistent_because) == (False, ("load",))
    assert status.state is ServiceState.OFFLINE  # and not of a whole load
    apply(config, spark, source.last)
    assert_equal(config, source)


@contextmanager
def given_to_the_driver() -> Iterator[Counter[str]]:
    """Count what an applier's driver gets of Spark's tasks."""
    found = Counter[str]()
    add, read = PartitionBuffers.add, PartitionBuffers._read

    def counted(buffers: PartitionBuffers, parts: Iterable[Any]) -> None:
        given = list(parts)
        for part in given:
            if isinstance(part, Segment):
                found["events in segments"] += len(part)
                found["rows in segments"] += sum(map(len, part.changes))
            elif not isinstance(part, Unread):
                fragments = [read_fragment(value, "") for value in part["value"].to_pylist()]
                changes = [change for fragment in fragments for change in fragment["changes"]]
                found["rows in messages"] += sum(len(change.get("rows", ())) for change in changes)
        add(buffers, given)

    def again(buffers: PartitionBuffers, unread: Unread) -> None:
        found["read again"] += 1
        read(buffers, unread)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PartitionBuffers, "add", counted)
        patched.setattr(PartitionBuffers, "_read", again)
        yield found


@pytest.mark.parametrize("config", [1], indirect=True)
def test_load_for_one_of_two_targets_changes_nothing_on_the_other(config: Config, spark: SparkRun) -> None:
    url, ids = config.target.url.get_secret_value(), ("shelf", "lake")
    second = f"o{uuid.uuid4().hex[:10]}"
    query(config, f"CREATE DATABASE {second} ENCODING 'UTF8' TEMPLATE template0")
    urls = (url, url.rpartition("/")[0] + f"/{second}")
    shelf, lake = (
        config.model_copy(update={"target": config.target.model_copy(update={"url": SecretStr(one), "id": target})})
        for one, target in zip(urls, ids, strict=True)
    )
    log = LogWriter(config)
    log.online()
    source = Source(log, Random(18))
    differing_target(lake, spark, source)
    apply(shelf, spark, source.last - 1)
    excluded = ExcludedTables([TableName("shop", "poor")], "me@here", "a test")
    assert Applier(shelf, spark, SystemClock(), Event(), until=Seqno(source.last), excluded=excluded).run() is not None
    written = "SELECT xmin::text, ctid::text, * FROM shop.{} ORDER BY id"
    before = {one: query(shelf, written.format(one)) for one in ("orders", "poor", "bare")}

    source.targets = ("lake",)
    first = source.last + 1
    source.begin("bare")
    source.load("bare", Part.WHOLE, changed("read", "bare", *((None, row) for row in source.bare), key=False))
    source.load("bare", Part.END)
    for table in ("orders", "poor"):
        source.begin(table)
        for key in range(0, KEYS, CHUNK):
            source.read(table, key)
        source.load(table, Part.END)
    source.flush()
    with given_to_the_driver() as at_lake:
        apply(lake, spark, source.last)
    assert at_lake["rows in segments"] >= len(source.rows["orders"])  # as those of any load
    with given_to_the_driver() as at_shelf:
        apply(shelf, spark, source.last)
    assert at_shelf["events in segments"] > 10
    assert (at_shelf["rows in segments"], at_shelf["rows in messages"], at_shelf["read again"]) == (0, 0, 0)
    assert {one: query(shelf, written.format(one)) for one in before} == before
    assert query(shelf, "SELECT table_name, changes FROM thl.thl_excluded") == [("poor", 1)]
    assert query(shelf, "SELECT seqno, consistent FROM thl.thl_position") == [(source.last, True)]
    for one in (shelf, lake):
        applied = query(one, f"SELECT seqno FROM thl.thl_applied WHERE seqno >= {first} ORDER BY 1")
        assert [seqno for (seqno,) in applied] == [*range(first, source.last + 1)]
    assert rows_of(shelf, "orders") == rows_of(lake, "orders") == sorted(source.rows["orders"].values())
    assert rows_of(lake, "poor") == sorted(source.rows["poor"].values())
    assert rows_of(shelf, "bare") == rows_of(lake, "bare") == sorted(source.bare)
    query(config, f"DROP DATABASE {second} WITH (FORCE)")


@pytest.mark.parametrize("config", [1], indirect=True)
@pytest.mark.parametrize(
    "at_the_end",
    [pytest.param(False, marks=pytest.mark.long, id="between chunks"), pytest.param(True, id="at the end")],
)
def test_applier_that_is_killed_in_a_load_goes_on(
    config: Config, spark: SparkRun, tmp_path: Path, at_the_end: bool
) -> None:
    log = LogWriter(config)
    log.online()
    source = Source(log, Random(17))
    differing_target(config, spark, source)
    between, end = loads(source)
    source.flush()
    before = end - 1 if at_the_end else between
    apply(config, spark, before)
    document = {
        "service": config.service,
        "kafka": {"bootstrap": config.kafka.bootstrap},
        "apply": {"checkpoint_dir": str(tmp_path / "killed"), "heap": "512m",
                  "spark": {"spark.jars": ",".join(map(str, spark_kafka_jars()))}},
        "target": {"url": config.target.url.get_secret_value(), "audit": True},
    }  # fmt: skip
    (tmp_path / "thl.yaml").write_text(yaml.safe_dump(document))
    process = Process(
        [THL, "apply", "--config", str(tmp_path / "thl.yaml")], tmp_path, THL_CRASH_POINT="target.before_commit:1"
    )
    try:
        assert process.wait() == -signal.SIGKILL
    finally:
        process.end()
    assert query(config, "SELECT seqno FROM thl.thl_position") == [(before,)]
    assert query(config, "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'thl_marks_%'") == [(1,)]
    apply(config, spark, source.last)
    assert_equal(config, source)
