"""What needs whole rows works over a log that a record store completed, and is refused over one of partial images.

Two producers read one source whose session logs with MINIMAL: one completes the images, the other publishes them as
they are.
"""

from __future__ import annotations

import json
import socket
import sqlite3
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from connector.applier.applier import Applier
from connector.applier.undo import undo
from connector.cli import run as thl
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.model import Config
from connector.errors import TargetDiffers, Unsupported
from connector.log.ids import Seqno
from connector.log.transaction.load import Part
from connector.spark.session import SparkRun
from connector.targets.ddl.loads import NOT_LOADED
from connector.targets.open import open_signal_table, open_target
from tests.sinks.debezium_jdbc import messages, rows_app
from tests.support.clock import PATIENCE
from tests.support.mysql import connect
from tests.support.producing import Bench, Producing, finished, fragments, last_seqno, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.spark import session
from tests.support.written_tables import asked

pytestmark = pytest.mark.long

COLUMNS = ["id", "a", "v", "b"]
CREATE = "CREATE TABLE t (id INT PRIMARY KEY, a INT NOT NULL DEFAULT 5, v VARCHAR(20) DEFAULT 'd', b TEXT)"
LOADED = 2000  # rows of the initial load
TRANSACTIONS = [  # each leaves the table in another state
    ["INSERT INTO t (id) VALUES (-1), (-2)"],
    ["UPDATE t SET a = a + 1 WHERE id BETWEEN -2 AND 8"],
    ["UPDATE t SET v = 'changed' WHERE id = 3", "UPDATE t SET b = 'text' WHERE id IN (3, 4)"],
    ["UPDATE t SET id = id + 10000 WHERE id IN (3, 5)"],
    ["UPDATE t SET id = -9 WHERE id = 7", "UPDATE t SET id = 7 WHERE id = 8", "UPDATE t SET id = 8 WHERE id = -9"],
    ["DELETE FROM t WHERE id IN (1, 10003)"],
    ["REPLACE INTO t (id, a) VALUES (2, 99), (1, 98)"],
    ["INSERT INTO t (id, a) VALUES (4, 0) ON DUPLICATE KEY UPDATE v = 'there'", "DELETE FROM t WHERE id = 6"],
]
ALL = len(TRANSACTIONS)
BEGUN, ENDED = "the load of a table begins", "loaded a table"
ROUND, LOAD_ENDED = "published a round of loads", " loaded service="
CHUNKS = {
    "THL_SOURCE__SNAPSHOT__CHUNK_ROWS": "100",
    "THL_SOURCE__SNAPSHOT__ROUND_SECONDS": "0.005",
    "THL_SOURCE__DUMP_HEARTBEAT": "0.5",
}
MOVED = 100_000  # added to the keys that change within the load
GONE = f"id > {LOADED // 2}"  # rows that the target lacks when the load begins

Rows = dict[int, tuple[Any, ...]]


@dataclass
class Logs:
    """The two logs, and the states of the table.

    Args:
        whole: the service whose producer has a record store.
        partial: the one without.
        states: the rows before the transactions, and after each.
        end: the rows after the load.
        begun: the event of each log before the transactions.
        last: the last event of each log.
        metrics: those of the producer with a store.
    """

    whole: Bench
    partial: Bench
    states: list[Rows] = field(default_factory=list)
    end: Rows = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    metrics: str = ""

    def seqno(self, bench: Bench, transactions: int) -> int:
        """The event after so many of the transactions."""
        return self.begun[bench.service] + transactions

    @property
    def database(self) -> str:
        return self.whole.service

    def config(self, bench: Bench, folder: Path) -> Config:
        """The configuration of an applier with a target of its own."""
        folder.mkdir(exist_ok=True)
        target = Target(url=f"sqlite:///{folder}/target.db")
        apply = bench.config.apply.model_copy(update={"checkpoint_dir": folder / "spark"})
        return bench.config.model_copy(update={"target": target, "apply": apply})


def on_source(cursor: Any) -> Rows:
    cursor.execute("SELECT id, a, v, b FROM t")
    return {row[0]: tuple(row) for row in cursor.fetchall()}


def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def create(cursor: Any, database: str) -> None:
    """Create and fill the table, in a session with MINIMAL."""
    rows = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {LOADED})"
    for sql in (f"CREATE DATABASE {database}", f"USE {database}", CREATE,
                f"SET cte_max_recursion_depth = {LOADED}", "SET SESSION binlog_row_image = MINIMAL",
                f"INSERT INTO t {rows} SELECT i, i % 9, CONCAT('v', i), REPEAT('b', i % 7) FROM n"):  # fmt: skip
        cursor.execute(sql)


@pytest.fixture(scope="module")
def logs(mysql_server: SqlServer, kafka_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Logs:
    folder = tmp_path_factory.mktemp("completed")
    whole = Bench(mysql_server, kafka_broker, folder)
    chunks = {**CHUNKS, "THL_SOURCE__FILTERS__DO": f'["{whole.service}"]'}
    serving = port()
    store = {"THL_SOURCE__RECORDS__DIR": str(folder / "records"), "THL_METRICS__PORT": str(serving)}
    whole = replace(whole, settings=chunks | store)
    made = Logs(whole, Bench(mysql_server, kafka_broker, folder, settings=chunks))
    with connect(mysql_server) as connection, connection.cursor() as cursor:
        create(cursor, made.database)
        with whole.start() as a, made.partial.start() as b:
            for producing in (a, b):
                producing.loaded()
            write(made, cursor)
            load(made, cursor, {whole.service: a, made.partial.service: b})
            made.metrics = (
                urllib.request.urlopen(f"http://127.0.0.1:{serving}/metrics", timeout=PATIENCE).read().decode()
            )
            assert (a.stop(), b.stop()) == (0, 0)
        made.end = on_source(cursor)
    return made


def write(logs: Logs, cursor: Any) -> None:
    """Commit the transactions, and note what each leaves."""
    benches = (logs.whole, logs.partial)
    logs.begun |= {bench.service: last_seqno(bench) for bench in benches}
    logs.states.append(on_source(cursor))
    for transaction in TRANSACTIONS:
        for sql in ("BEGIN", *transaction, "COMMIT"):
            cursor.execute(sql)
        logs.states.append(on_source(cursor))
    until(lambda: all(last_seqno(bench) == logs.seqno(bench, ALL) for bench in benches))


def load(logs: Logs, cursor: Any, producing: dict[str, Producing]) -> None:
    """Load the table in both logs, and change keys meanwhile, from the one that is read last on."""
    before = {name: {text: one.text.count(text) for text in (BEGUN, ENDED)} for name, one in producing.items()}

    def more(text: str) -> bool:
        return all(one.text.count(text) > before[name][text] for name, one in producing.items())

    for bench in (logs.whole, logs.partial):
        assert asked(bench, f"{logs.database}.t") == 0
    until(lambda: more(BEGUN))
    for key in range(LOADED, LOADED // 2, -1):
        if more(ENDED):
            break
        cursor.execute(f"UPDATE t SET id = id + {MOVED} WHERE id = {key}")
    until(lambda: more(ENDED))
    cursor.execute("INSERT INTO t (id) VALUES (-100)")
    until(lambda: all(-100 in inserted(bench) for bench in (logs.whole, logs.partial)))
    logs.last |= {bench.service: last_seqno(bench) for bench in (logs.whole, logs.partial)}


def inserted(bench: Bench) -> list[Any]:
    """The keys that the log's last event has inserted."""
    changes = finished(fragments(bench.config))[-1][-1]["changes"]
    return [row["after"][0] for change in changes if change.get("action") == "insert" for row in change["rows"]]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRun]:
    with session(tmp_path_factory.mktemp("spark")) as started:
        yield started


def apply(config: Config, spark: SparkRun, until: int, first: int | None = None) -> None:
    start = None if first is None else Seqno(first)
    assert Applier(config, spark, SystemClock(), Event(), until=Seqno(until), first=start).run() is not None


def on_target(config: Config) -> Rows:
    with closing(database(config)) as db:
        name = db.execute("SELECT target_name FROM thl_tables WHERE table_name = 't'").fetchone()[0]
        return {row[0]: tuple(row) for row in db.execute(f'SELECT id, a, v, b FROM "{name}"')}


def database(config: Config) -> sqlite3.Connection:
    return sqlite3.connect(config.target.url.get_secret_value().removeprefix("sqlite:///"))


def take_back(config: Config, to: int) -> None:
    with closing(open_target(config.target, SystemClock())) as target, open_signal_table(config.target) as signals:
        undo(config, target, signals, Seqno(to), SystemClock())


def listed(logs: Logs, bench: Bench, capsys: pytest.CaptureFixture[str]) -> Iterator[tuple[int, Any]]:
    """The rows of the transactions as `thl list` shows them, each with the number of its transaction, from 1."""
    arguments = ["--set", f"service={bench.service}", "--set", f"kafka.bootstrap={bench.kafka.bootstrap}"]
    bounds = ["--from-seqno", str(logs.seqno(bench, 1)), "--to-seqno", str(logs.seqno(bench, ALL))]
    assert thl(["list", *arguments, "--format", "json", *bounds]) == 0
    for line in capsys.readouterr().out.splitlines():
        fragment = json.loads(line)
        for change in fragment["changes"]:
            for row in change["rows"]:
                yield fragment["seqno"] - logs.begun[bench.service], row


def test_listed_rows_are_whole_and_lead_to_each_state(logs: Logs, capsys: pytest.CaptureFixture[str]) -> None:
    rows, seen = dict(logs.states[0]), 0
    for number, row in listed(logs, logs.whole, capsys):
        if number != seen:
            assert rows == logs.states[seen]
        seen = number
        if "before" in row:
            assert tuple(row["before"].values()) == rows.pop(row["before"]["id"])
        if "after" in row:
            assert list(row["after"]) == COLUMNS
            rows[row["after"]["id"]] = tuple(row["after"].values())
    assert seen == ALL
    assert rows == logs.states[ALL]
    partial = [row for _, row in listed(logs, logs.partial, capsys)]
    assert any(len(image) < len(COLUMNS) for row in partial for image in row.values())


def test_a_target_goes_back_by_undo_and_rewind(logs: Logs, spark: SparkRun, tmp_path: Path) -> None:
    config = logs.config(logs.whole, tmp_path / "whole")
    last = logs.seqno(logs.whole, ALL)
    apply(config, spark, last)
    assert on_target(config) == logs.states[ALL]
    for to in (ALL - 3, 0):
        take_back(config, logs.seqno(logs.whole, to))
        assert on_target(config) == logs.states[to]
    apply(config, spark, last)
    assert on_target(config) == logs.states[ALL]
    apply(config, spark, last - 2, logs.seqno(logs.whole, 1))
    apply(config, spark, last)
    assert on_target(config) == logs.states[ALL]


def test_undo_and_rewind_over_partial_images_are_refused_by_the_tables_name(
    logs: Logs, spark: SparkRun, tmp_path: Path
) -> None:
    config = logs.config(logs.partial, tmp_path / "partial")
    last = logs.seqno(logs.partial, ALL)
    apply(config, spark, last)
    assert on_target(config) == logs.states[ALL]
    with pytest.raises(Unsupported, match="partial row images cannot be undone") as not_undone:
        take_back(config, logs.seqno(logs.partial, 0))
    with pytest.raises(Unsupported, match="partial row images cannot be applied again") as not_again:
        apply(config, spark, last, logs.seqno(logs.partial, 1))
    assert not_undone.value.where["partial"] == not_again.value.where["partial"] == f"{logs.database}.t"
    assert on_target(config) == logs.states[ALL]


def test_envelopes_of_row_topics_have_whole_rows(logs: Logs) -> None:
    done = rows_app(logs.whole, "--to-now", "--no-tombstones", "--prefix", f"rows.{logs.database}")
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    rows: Rows = {}
    told = set[str]()
    for _, value in messages(logs.whole, f"rows.{logs.database}.{logs.database}.t"):
        one = json.loads(value or b"")["payload"]
        told.add(one["op"])
        before, after = (None if one[image] is None else tuple(one[image].values()) for image in ("before", "after"))
        if before is not None:
            assert before == rows.pop(before[0])
        else:
            assert one["op"] in "cr"
        if after is not None:
            rows[after[0]] = after
    assert told == {"r", "c", "u", "d"}
    assert rows == logs.end


def moved_within_load(bench: Bench) -> int:
    """The rows whose keys were changed between the begin of the table's load and its end."""
    loading, found = False, 0
    for event in finished(fragments(bench.config)):
        part = event[0]["metadata"].get("load_part")
        loading = part == Part.BEGIN or (loading and part != Part.END)
        changes = [change for fragment in event for change in fragment["changes"] if change.get("action") == "update"]
        found += loading and sum(row["after"][0] > MOVED for change in changes for row in change["rows"])
    return found


def lacking_target(logs: Logs, bench: Bench, spark: SparkRun, folder: Path) -> Config:
    """A target at the event before the load, without half of the rows."""
    config = logs.config(bench, folder)
    apply(config, spark, logs.seqno(bench, ALL))
    with closing(database(config)) as db, db:
        db.execute(f'DELETE FROM "{logs.database}.t" WHERE {GONE}')
    return config


def test_a_load_is_right_under_key_changes(logs: Logs, spark: SparkRun, tmp_path: Path) -> None:
    assert moved_within_load(logs.whole) > 0
    config = lacking_target(logs, logs.whole, spark, tmp_path / "whole")
    apply(config, spark, logs.last[logs.whole.service])
    assert on_target(config) == logs.end


def test_a_load_under_partial_key_changes_stops_with_the_way_out(logs: Logs, spark: SparkRun, tmp_path: Path) -> None:
    assert moved_within_load(logs.partial) > 0
    config = lacking_target(logs, logs.partial, spark, tmp_path / "partial")
    with pytest.raises(TargetDiffers) as stopped:
        apply(config, spark, logs.last[logs.partial.service])
    assert NOT_LOADED in stopped.value.hint
    assert str(stopped.value.where["table"]) == f"{logs.database}.t"


def test_rows_whose_keys_change_before_the_initial_load_reads_them_are_right(
    mysql_server: SqlServer, kafka_broker: Broker, spark: SparkRun, tmp_path: Path
) -> None:
    """They get keys that the load has passed, while the store does not know them."""
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(CHUNKS))
    bench.settings["THL_SOURCE__RECORDS__DIR"] = str(tmp_path / "records")
    with connect(mysql_server) as connection, connection.cursor() as cursor:
        create(cursor, bench.service)
        with bench.start() as producing:
            producing.online()
            for top in range(LOADED, 0, -10):
                rounds = producing.text.count(ROUND)
                cursor.execute(f"UPDATE t SET id = -id WHERE id BETWEEN {top - 9} AND {top}")
                until(lambda rounds=rounds: LOAD_ENDED in producing.text or producing.text.count(ROUND) > rounds)
                if LOAD_ENDED in producing.text:
                    break
            cursor.execute("UPDATE t SET a = a + 1 WHERE id < 0")
            cursor.execute("INSERT INTO t (id) VALUES (-100000)")
            until(lambda: producing.process.poll() is not None or -100000 in inserted(bench))
            assert producing.stop() == 0, producing.text
        end = on_source(cursor)
    assert "a table is read once more" in producing.text
    config = bench.config.model_copy(update={"target": Target(url=f"sqlite:///{tmp_path}/target.db")})
    apply(config, spark, last_seqno(bench))
    assert on_target(config) == end


def test_metrics_show_the_store(logs: Logs) -> None:
    found = {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in logs.metrics.splitlines()
        if line.startswith("thl_records_")
    }
    service = f'service="{logs.whole.service}"'
    assert found[f"thl_records_size_bytes{{{service}}}"] > LOADED
    assert found[f"thl_records_lag_events{{{service}}}"] == 0
    assert found[f"thl_records_oldest_seqno{{{service}}}"] == -1
    assert found[f'thl_records_lookups_total{{found="memory",{service}}}'] > 0
