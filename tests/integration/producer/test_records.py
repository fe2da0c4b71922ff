"""A record store completes partial row images: logs of replicas with MINIMAL and NOBLOB are those of their source."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from tests.integration.applier.test_row_images import STATEMENTS, SWAP, TABLES
from tests.support.mysql import connect
from tests.support.producing import SMALL, Bench, finished, fragments, last_seqno, until
from tests.support.servers.environment import Broker

LITTLE = {
    **MYSQL_FAST,
    "innodb_buffer_pool_size": "32M",
    "innodb_redo_log_capacity": "32M",
    "log_replica_updates": "ON",
}
DDL = [
    "ALTER TABLE k ADD COLUMN late VARCHAR(9) NOT NULL DEFAULT 'late' AFTER a",
    "ALTER TABLE k RENAME COLUMN v TO w; UPDATE k SET a = a + 1; ALTER TABLE k RENAME COLUMN w TO v",
    "ALTER TABLE c MODIFY price DECIMAL(12,4)",
    "ALTER TABLE c RENAME TO c2; UPDATE c2 SET note = 'renamed'; RENAME TABLE c2 TO c",
    "UPDATE k SET late = 'x' WHERE id < 9; ALTER TABLE k DROP COLUMN late",
    "TRUNCATE TABLE large",
    "CREATE TABLE copied (PRIMARY KEY (id)) SELECT id, a, v FROM k",
    "UPDATE copied SET v = 'changed' WHERE id < 30",
    "DROP TABLE copied",
]


class Trio:
    """A source, and two replicas that log with images of their own."""

    def __init__(self, folder: Path) -> None:
        self.first = MySqlServer(folder / "1", settings=LITTLE, die_with_parent=True)
        self.minimal = MySqlServer(
            folder / "2", settings={**LITTLE, "server_id": "2", "binlog_row_image": "MINIMAL"}, die_with_parent=True
        )
        self.noblob = MySqlServer(
            folder / "3", settings={**LITTLE, "server_id": "3", "binlog_row_image": "NOBLOB"}, die_with_parent=True
        )

    def follow(self) -> None:
        """Let the replicas follow."""
        first = self.first
        for replica in (self.minimal, self.noblob):
            replica.run_sql(
                f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{first.host}', SOURCE_PORT = {first.port}, SOURCE_USER = "
                f"'{first.user}', SOURCE_PASSWORD = '{first.password}', SOURCE_AUTO_POSITION = 1, "
                "GET_SOURCE_PUBLIC_KEY = 1; START REPLICA"
            )

    def wait(self) -> None:
        """Wait until the replicas have everything."""
        executed = self.first.run_sql("SELECT @@GLOBAL.gtid_executed").splitlines()[1].replace("\\n", "")
        for replica in (self.minimal, self.noblob):
            assert "0" in replica.run_sql(f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{executed}', 60)").splitlines()[1]


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    made = Trio(tmp_path_factory.mktemp("trio"))
    with made.first, made.minimal, made.noblob:
        made.follow()
        yield made


def benches(trio: Trio, kafka: Broker, folder: Path) -> list[Bench]:
    """A producer for each of the three; those of the replicas have a record store."""
    database = Bench(trio.first, kafka, folder).service
    trio.first.run_sql(f"CREATE DATABASE {database}")
    trio.wait()
    settings = {**SMALL, "THL_SOURCE__FILTERS__DO": f'["{database}"]'}
    made = [Bench(trio.first, kafka, folder, settings=settings)]
    for server in (trio.minimal, trio.noblob):
        one = Bench(server, kafka, folder)
        records = {"THL_SOURCE__RECORDS__DIR": str(folder / f"records-{one.service}")}
        made.append(replace(one, settings={**settings, **records}))
    return [replace(one, settings={**one.settings, "DATABASE": database}) for one in made]


def database_of(bench: Bench) -> str:
    return bench.settings["DATABASE"]


def churn(cursor: Any, draw: random.Random, steps: int) -> None:
    """Random statements, some in transactions of several."""
    for step in range(steps):
        if step % 8 == 0:
            cursor.execute("COMMIT")
            cursor.execute("BEGIN" if step % 16 else "COMMIT")
        one, other = draw.randrange(1, 60), draw.randrange(1, 60)
        cursor.execute(draw.choice(STATEMENTS).format(one, other))
        if draw.random() < 0.1 and one != other:
            cursor.execute(f"SELECT COUNT(*) FROM k WHERE id IN ({one}, {other})")
            if cursor.fetchone()[0] == 2:
                for sql in SWAP:
                    cursor.execute(sql.format(one, other))
    cursor.execute("COMMIT")


def events_of(bench: Bench) -> list[dict[str, Any]]:
    """The events of the stream, each with its changes as they are to consumers."""
    found = []
    for event in finished(fragments(bench.config)):
        head, last = event[0], event[-1]
        if head["kind"] == "load" or "snapshot" in head["metadata"]:
            continue
        found.append(
            {
                "kind": head["kind"],
                "gtid": head["gtid"],
                "shard": head["shard"],
                "outcome": last["outcome"],
                "rows": last["rows"],
                "changes": flat([change for fragment in event for change in fragment["changes"]]),
            }
        )
    return found


def flat(changes: Sequence[dict[str, Any]]) -> list[Any]:
    """Statements, and rows one by one with all that is said of them."""
    found: list[Any] = []
    for change in changes:
        if "rows" not in change:
            assert "sql" in change, "a row of this test is not in parts"
            found.append((change["schema"], change["sql"]))
            continue
        facts = tuple(change[name] for name in ("schema", "table", "action", "before_present", "after_present"))
        layout = repr((change["columns"], change["key_columns"]))
        rows = [(*facts, layout, row["before"], row["after"]) for row in change["rows"]]
        # A replica changes the rows of a table without a key in the order in which it finds them.
        found += rows if change["key_columns"] else sorted(rows, key=repr)
    return found


def partial_rows(events: Sequence[dict[str, Any]]) -> int:
    """Rows whose images lack columns."""
    return sum(bool(one[3] or one[4]) for event in events for one in event["changes"] if len(one) > 2)


def compare(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Compare two logs event by event, value by value."""
    assert [event["gtid"] for event in found] == [event["gtid"] for event in expected]
    for one, other in zip(found, expected, strict=True):
        assert len(one["changes"]) == len(other["changes"]), (one, other)
        for mine, whole in zip(one["changes"], other["changes"], strict=True):
            assert mine == whole, one["gtid"]
        assert one == other


def test_logs_of_replicas_with_partial_images_equal_that_of_their_source(
    trio: Trio, kafka_broker: Broker, tmp_path: Path
) -> None:
    full, minimal, noblob = benches(trio, kafka_broker, tmp_path)
    with full.start() as a, minimal.start() as b, noblob.start() as c:
        for one in (a, b, c):
            one.loaded()
        draw = random.Random(7)
        with connect(trio.first) as connection, connection.cursor() as cursor:
            cursor.execute(f"USE {database_of(full)}")
            for sql in TABLES:
                cursor.execute(sql)
            churn(cursor, draw, 400)
            cursor.execute("SET SESSION binlog_row_value_options = PARTIAL_JSON")
            churn(cursor, draw, 100)
            for group in DDL:
                for sql in group.split("; "):
                    cursor.execute(sql)
                churn(cursor, draw, 40)
            cursor.execute("CREATE TABLE the_end (a INT)")
        trio.wait()
        for bench, process in ((full, a), (minimal, b), (noblob, c)):
            until(lambda bench=bench, process=process: process.process.poll() is not None or _ended(bench))
            assert process.process.poll() is None, process.text
    expected = events_of(full)
    assert len(expected) > 300
    for bench in (minimal, noblob):
        found = events_of(bench)
        assert partial_rows(found) == 0
        compare(found, expected)


def _ended(bench: Bench) -> bool:
    if last_seqno(bench) < 0:
        return False
    newest = finished(fragments(bench.config))[-1]
    return any("the_end" in change.get("sql", "") for change in newest[-1]["changes"])
