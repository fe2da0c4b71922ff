"""`thl produce` on a real MySQL and a real Kafka, killed at critical points: every event once, in order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from connector import failpoints as faults
from connector.cli import run as thl
from connector.consume import Consumer
from connector.errors import TimedOut
from connector.kafka.log_reader import LogReader
from connector.sandbox.ports import free_port
from tests.support.clock import PATIENCE
from tests.support.long import long
from tests.support.producing import SMALL, Bench, check, finished, fragments, last_seqno, table_of, until
from tests.support.servers.environment import Broker, SqlServer

IN_THE_STREAM = [point for point in faults.PRODUCE if "snapshot" not in point and "prepared" not in point]
STREAM, LOAD = "produce.mid_event_after_commit", "produce.snapshot_after_commit"
IN_THE_LOAD = [point for point in faults.PRODUCE if "snapshot" in point]


@pytest.fixture
def bench(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Bench:
    result = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SMALL))
    result.make_table()
    return result


def test_producer_loads_follows_ends_and_resumes(bench: Bench) -> None:
    with bench.start() as first:
        first.loaded()
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        bench.sql(f"UPDATE {bench.service}.t SET v = 'changed' WHERE id = 1")
        until(lambda: last_seqno(bench) >= 6)
        assert first.stop() == 0
        assert "stopped after event 6" in first.text
    bench.sql(f"SET binlog_rows_query_log_events = ON; DELETE FROM {bench.service}.t WHERE id = 2")
    with bench.start(THL_SOURCE__ROWS_QUERY_BYTES="21") as second:
        until(lambda: last_seqno(bench) >= 7)
        assert second.stop() == 0
    events = check(bench)
    assert [event[0]["epoch"] for event in events] == [1, 1, 1, 1, 1, 1, 1, 2]
    (metadata,) = {event[0]["metadata"].get("rows_query.0") for event in events} - {None}
    assert metadata == f"DELETE FROM {bench.service} … (21 of 36 bytes)"


def test_start_of_a_new_log_is_ignored_with_a_line_where_the_log_exists_and_refused_after_its_end(bench: Bench) -> None:
    line = "--start is ignored"
    with bench.start("--start", "now") as first:
        first.online()
        assert first.stop() == 0
        assert line not in first.text
    bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('between')")
    with bench.start("--start", "now") as again:
        again.online()
        until(lambda: last_seqno(bench) >= 0)
        assert again.stop() == 0
        assert again.text.count(line) == 1
    with bench.start("--start", "binlog.999999:4") as refused:
        assert refused.ended() == 3
        assert "--start is after the log's position" in refused.text
    with bench.start() as last:
        last.online()
        assert last.stop() == 0
        assert line not in last.text


def test_rows_of_a_load_and_of_the_stream_are_counted_by_table(bench: Bench) -> None:
    port = free_port()
    with bench.start(THL_METRICS__PORT=str(port)) as running:
        running.loaded()
        until(lambda: table_rows(port, bench.service) == 2)
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('a'), ('b'), ('c')")
        bench.sql(f"DELETE FROM {bench.service}.t WHERE v = 'a'")
        until(lambda: table_rows(port, bench.service) == 6)
        assert running.stop() == 0


def table_rows(port: int, schema: str) -> float:
    """The metric of the table `t` of a schema."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    found = [line for line in lines if line.startswith("thl_published_table_rows_total{") and f'"{schema}"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in found if 'table="t"' in line)


@pytest.mark.faults
@pytest.mark.parametrize("point", [STREAM, *long(*(one for one in IN_THE_STREAM if one != STREAM))])
def test_producer_killed_in_the_stream_publishes_each_event_once(bench: Bench, point: str) -> None:
    with bench.start(THL_SOURCE__START="earliest") as first:
        until(lambda: last_seqno(bench) >= 2)
        assert first.stop() == 0
    bench.insert_many(3000)
    with bench.start(THL_CRASH_POINT=point) as killed:
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        assert killed.ended() == -signal.SIGKILL
    with bench.start() as third:
        third.online()
        until(lambda: last_seqno(bench) >= 4)
        assert third.stop() == 0
    check(bench)


@pytest.mark.faults
@pytest.mark.parametrize("point", [LOAD, *long(*(one for one in IN_THE_LOAD if one != LOAD))])
def test_producer_killed_in_the_load_starts_it_again(bench: Bench, point: str) -> None:
    bench.settings |= {"THL_SOURCE__SNAPSHOT__CHUNK_ROWS": "500", "THL_PUBLISH__COMMIT_BYTES": "100"}  # several commits
    bench.insert_many(3000)
    with bench.start(THL_CRASH_POINT=f"{point}:1") as killed:
        assert killed.ended() == -signal.SIGKILL
    bench.sql(f"DELETE FROM {bench.service}.t WHERE id % 3 = 1")
    with bench.start() as again:
        until(lambda: " loaded service=" in again.text or point == "produce.snapshot_end_after_commit")
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        until(lambda: table_of(finished(fragments(bench.config))) == bench.rows())
        assert again.stop() == 0
    events = check(bench)
    begun = [event for event in events if event[0]["metadata"].get("snapshot") == "begin"]
    committed = point in {"produce.snapshot_after_commit", "produce.snapshot_end_before_commit"}
    assert len(begun) == (2 if committed else 1)


@pytest.mark.faults
def test_an_ordinary_consumer_sees_each_event_once_though_one_was_given_up(bench: Bench) -> None:
    with bench.start(THL_SOURCE__START="earliest") as first:
        until(lambda: last_seqno(bench) >= 2)
        assert first.stop() == 0
    bench.insert_many(3000)
    with bench.start(THL_CRASH_POINT="produce.mid_event_after_commit:2") as killed:
        assert killed.ended() == -signal.SIGKILL
    with bench.start() as again:
        until(lambda: last_seqno(bench) >= 3)
        assert again.stop() == 0
    records = fragments(bench.config)
    assert {record["epoch"] for record in records if record["seqno"] == 3 and record["kind"] != "epoch"} == {2, 3}
    example = Path(__file__).parents[2] / "consumer_example.py"
    schema = Path(__file__).parents[3] / "schemas" / "fragment.avsc"
    told = subprocess.run(
        [sys.executable, "-I", str(example), bench.kafka.bootstrap, bench.config.topic, str(schema)],
        check=True,
        capture_output=True,
        text=True,
        cwd=example.parent,
        timeout=PATIENCE,
    )
    events = [json.loads(line) for line in told.stdout.splitlines()]
    assert [(event["seqno"], event["epoch"]) for event in events] == [(0, 1), (1, 1), (2, 1), (3, 3)]
    assert sum(len(change["rows"]) for change in events[3]["changes"]) == 3000
    with Consumer(bench.kafka.bootstrap, bench.service, until_end=True) as consumer:
        read = [
            (event.seqno, event.epoch, sum(len(getattr(c, "rows", ())) for c in event.changes)) for event in consumer
        ]
    assert [each[:2] for each in read] == [(event["seqno"], event["epoch"]) for event in events]
    assert read[3][2] == 3000


def test_older_of_two_producers_ends_fenced(bench: Bench) -> None:
    with bench.start() as older:
        older.loaded()
        with bench.start() as newer:
            newer.online()
            bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
            assert older.ended() == 7
            assert "newer producer" in older.text
            until(lambda: last_seqno(bench) >= 5)
            assert newer.stop() == 0
    check(bench)


@pytest.mark.faults
@pytest.mark.parametrize(
    "point", ["produce.mid_event_before_commit", *long("produce.before_commit", "produce.after_commit")]
)
def test_a_stopped_producer_writes_nothing_once_it_continues(bench: Bench, point: str) -> None:
    with bench.start(THL_SOURCE__START="earliest") as first:
        until(lambda: last_seqno(bench) >= 2)
        assert first.stop() == 0
    with bench.start(THL_STOP_POINT=point) as older:
        older.online()
        bench.insert_many(3000)
        until(lambda: stopped(older.process.pid))
        with bench.start() as newer:
            until(lambda: last_seqno(bench) >= 3)
            os.kill(older.process.pid, signal.SIGCONT)
            assert older.ended() == 7
            bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('last')")
            until(lambda: last_seqno(bench) >= 4)
            assert newer.stop() == 0
    check(bench)


def test_filtered_transactions_move_the_position(bench: Bench) -> None:
    bench.settings["THL_PUBLISH__IDLE_POSITION_SECONDS"] = "0.2"
    other = f"{bench.service}_not"
    with bench.start(THL_SOURCE__START="now") as running:
        running.online()
        bench.sql(f"CREATE DATABASE {other}; CREATE TABLE {other}.t (i INT); INSERT INTO {other}.t VALUES (1)")
        gtids = bench.sql("SELECT @@GLOBAL.gtid_executed").splitlines()[1:]

        def seen() -> bool:
            with LogReader(bench.config) as reader:
                position = reader.position()
            return position is not None and position.gtid_set == "".join(gtids).replace("\\n", "")

        until(seen)
        assert last_seqno(bench) == -1
        assert running.stop() == 0


def test_lost_source_is_reconnected(bench: Bench) -> None:
    with bench.start() as running:
        running.loaded()
        dump = bench.sql("SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'")
        for thread in dump.splitlines()[1:]:
            bench.sql(f"KILL {thread}")
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        until(lambda: last_seqno(bench) >= 5)
        assert "the source is back" in running.text
        assert running.stop() == 0
    check(bench)


@pytest.mark.faults
def test_killed_broker_is_reconnected(bench: Bench) -> None:
    with bench.start() as running:
        running.loaded()
        bench.kafka.kill()
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        bench.kafka.start()
        bench.insert_many(3000)
        until(lambda: last_seqno(bench) >= 6)
        assert running.stop() == 0
    check(bench)


def test_stop_request_ends_at_the_end_of_an_event(bench: Bench) -> None:
    with bench.start(THL_SOURCE__START="earliest") as first:
        until(lambda: last_seqno(bench) >= 2)
        assert first.stop() == 0
    bench.insert_many(100_000)
    with bench.start() as running:
        until(lambda: fragments(bench.config)[-1]["seqno"] == 3)  # the event is begun
        assert running.stop() == 0
        assert "unfinished" not in running.text
    assert len(check(bench)) == 4


def test_offline_request_ends_this_producer_and_not_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in bench.environment.items():
        monkeypatch.setenv(name, value)
    offline = ["offline", "--producer", "--reason", "an upgrade"]
    assert thl(offline) != 0  # there is no such log yet
    with bench.start(THL_SOURCE__START="earliest") as first:
        until(lambda: last_seqno(bench) >= 2)
        capsys.readouterr()
        assert thl(offline) == 0
        assert capsys.readouterr().out == f"the producer of service {bench.service} is offline after event 2\n"
        assert first.ended() == 0
        assert ": an upgrade" in first.text.partition("offline, as ")[2]
    assert thl([*offline, "--timeout", "0.2"]) == TimedOut.exit_code
    assert "has not gone offline within 0.2 s" in capsys.readouterr().err
    with bench.start() as second:
        second.online()
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        until(lambda: last_seqno(bench) >= 3)
        assert second.stop() == 0
        assert "offline, as" not in second.text
    check(bench)


def stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
