"""A record store that is damaged while the producer publishes, behind the log, or wanted by two processes."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from connector.cli import run as thl
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.errors import ConfigError, RecordsDamaged
from connector.kafka.log_reader import LogReader
from connector.log.epochs.history import History
from connector.log.format.shard import partition_of
from connector.log.ids import Action, Seqno, ShardId
from connector.producer.records.catch_up import _releases, first_event
from connector.producer.records.report import report, verify_store
from tests.integration.producer.test_record_filters import bench, changes_of, last, partial, publish
from tests.integration.producer.test_table_loads import events, go_on, stopped
from tests.support.fragments import record
from tests.support.log_writer import LogWriter
from tests.support.producing import Bench, fragments, last_seqno, until
from tests.support.servers.environment import Broker
from tests.support.written_tables import asked

__all__ = ["bench"]  # a fixture

pytestmark = pytest.mark.long

ROWS = 3000
AGAIN = "the record store begins again"
CAUGHT_UP = "the record store has read events of the log"


def fill(bench: Bench) -> None:
    """Insert rows that compress badly, with the keys from 1000 on."""
    bench.sql(
        f"USE {bench.service}; SET SESSION cte_max_recursion_depth = {ROWS + 1};"
        "ALTER TABLE t MODIFY v VARCHAR(200) NOT NULL DEFAULT 'clear'; INSERT INTO t WITH RECURSIVE n (i) AS "
        f"(SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS + 999}) SELECT i, i, "
        "concat(sha2(i, 256), sha2(-i, 256)) FROM n"
    )


def store(bench: Bench) -> Path:
    return Path(bench.settings["THL_SOURCE__RECORDS__DIR"])


def whole(bench: Bench, after: int) -> bool:
    """True if all rows of later events have all columns."""
    return all(
        set(image) == {"id", "a", "v"}
        for _, *images in changes_of(bench, after)
        for image in images
        if image is not None
    )


def flip_rows(folder: Path) -> None:
    """Flip a bit among the rows, which are the last keys: what is read when the store is opened lies before them."""
    largest = max(folder.glob("*.sst"), key=lambda path: path.stat().st_size)
    damaged = bytearray(largest.read_bytes())
    damaged[len(damaged) * 3 // 4] ^= 0x04
    largest.write_bytes(damaged)


def test_damage_that_is_found_while_publishing_is_mended_at_once(bench: Bench) -> None:
    fill(bench)
    with bench.start() as producing:
        assert producing.loaded().stop() == 0
    flip_rows(store(bench))
    with pytest.raises(RecordsDamaged):
        verify_store(bench.config)
    before = last(bench)
    with bench.start() as producing:
        producing.online()
        assert AGAIN not in producing.text
        publish(bench, producing, "UPDATE t SET a = -a")
        assert "stage=records" in producing.text
        assert AGAIN in producing.text
        assert producing.stop() == 0, producing.text
    assert whole(bench, before)
    assert sum(action is Action.UPDATE for action, *_ in changes_of(bench, before)) == ROWS + 2
    assert verify_store(bench.config)[0] > ROWS


def test_damage_that_is_found_while_the_log_is_read_is_mended_at_once(bench: Bench) -> None:
    fill(bench)
    with bench.start() as producing:
        assert producing.loaded().stop() == 0
    shutil.copytree(store(bench), bench.folder / "older")
    with bench.start() as producing:
        producing.online()
        publish(bench, producing, "UPDATE t SET a = -a")
        assert producing.stop() == 0
    shutil.rmtree(store(bench))
    shutil.copytree(bench.folder / "older", store(bench))
    flip_rows(store(bench))
    before = last(bench)
    with bench.start() as producing:
        producing.online()
        assert AGAIN in producing.text
        publish(bench, producing, "DELETE FROM t WHERE id < 1500")
        assert producing.stop() == 0, producing.text
    assert whole(bench, before)


def rebuilt(bench: Bench) -> int:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in bench.environment.items():
            patched.setenv(name, value)
        return thl(["records", "rebuild"])


def test_a_store_that_a_producer_has_open_is_not_rebuilt(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    with bench.start() as producing:
        producing.loaded()
        assert rebuilt(bench) == ConfigError.exit_code
        assert "another process has the record store open" in capsys.readouterr().err
        with bench.start() as other:  # it fences nobody
            assert other.ended() == ConfigError.exit_code
            assert "another process has the record store open" in other.text
        before = last(bench)
        publish(bench, producing, "UPDATE t SET a = 5 WHERE id = 2")
        assert producing.stop() == 0, producing.text
    assert changes_of(bench, before) == [(Action.UPDATE, {"id": 2, "a": 2, "v": "two"}, {"id": 2, "a": 5, "v": "two"})]
    assert rebuilt(bench) == 0
    assert {one.entry.table.name.table: one.rows for one in report(bench.config).tables}["t"] == 2


def table_of(bench: Bench, partition: int) -> str:
    """The name of a table whose events are in this partition of two."""
    names = (f"t{number}" for number in range(100))
    return next(one for one in names if partition_of(ShardId(f"{bench.service}.{one}"), 2) == partition)


def test_a_store_behind_a_log_of_which_a_quiet_partition_is_deleted_reads_the_rest(bench: Bench) -> None:
    """Retention deletes the old events of a partition that gets none; the store has them."""
    bench.settings |= {"THL_KAFKA__PARTITIONS": "2", "THL_PUBLISH__SHARD_BY": "table"}
    quiet = 1  # barriers go to the other
    busy, still = (table_of(bench, partition) for partition in (0, quiet))
    bench.sql(f"USE {bench.service}; CREATE TABLE {busy} LIKE t; CREATE TABLE {still} LIKE t")
    with bench.start() as producing:
        producing.loaded()
        publish(bench, producing, f"INSERT INTO {busy} (id) VALUES (7); INSERT INTO {still} (id) VALUES (7)")
        assert producing.stop() == 0
    partitions = {
        change.table: event.partition
        for event in events(bench)
        for change in event.changes
        if getattr(change, "action", None) is Action.INSERT
    }
    assert partitions == {busy: 0, still: quiet}
    without = {"THL_SOURCE__RECORDS__DIR": ""}
    with bench.start(**without) as producing:
        producing.online()
        bench.sql(f"UPDATE {bench.service}.{busy} SET a = 70 WHERE id = 7")
        publish(bench, producing, "SELECT 1")
        assert producing.stop() == 0
    with LogReader(bench.config) as log:
        _, end = log.bounds(quiet)
    admin = AdminClient({"bootstrap.servers": bench.kafka.bootstrap})
    for deleted in admin.delete_records([TopicPartition(bench.config.topic, quiet, end)]).values():
        deleted.result()
    before = last_seqno(bench)
    with bench.start() as producing:
        producing.online()
        assert CAUGHT_UP in producing.text
        assert AGAIN not in producing.text
        partial(bench, f"UPDATE {busy} SET v = 'late' WHERE id = 7")
        until(lambda: last_seqno(bench) == before + 2 or producing.process.poll() is not None)
        assert producing.stop() == 0, producing.text
    changes = [change for one in fragments(bench.config) if one["seqno"] == before + 1 for change in one["changes"]]
    assert [row for change in changes for row in change["rows"]] == [
        {"before": [7, 70, "clear"], "after": [7, 70, "late"]}
    ]


def test_a_store_reads_an_event_after_deleted_parts_of_its_copy_that_was_given_up(kafka_broker: Broker) -> None:
    config = Config(service=f"s{uuid.uuid4().hex[:10]}", kafka=Kafka(bootstrap=kafka_broker.bootstrap, partitions=1))
    log = LogWriter(config)
    log.online()
    log.events([record(0)])
    for fragno in range(3):
        log.events([record(1, fragno=fragno, last_frag=False)])
    with LogReader(config) as reader:
        end = reader.bounds(0)[1] - 4  # the second of three, each with Kafka's marker
        admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
        for deleted in admin.delete_records([TopicPartition(config.topic, 0, end)]).values():
            deleted.result()
        assert first_event(config, History.of(reader.control(), Seqno(0))) == 1
        log.online()
        log.events([record(1)])
        history = History.of(reader.control(), Seqno(1))
    assert (first := first_event(config, history)) == 1
    assert [one.seqno for one in _releases(config, history, first, Seqno(1))] == [1]


def test_tables_that_are_published_together_are_read_once_more_after_the_store_was_lost(bench: Bench) -> None:
    """A row of one gets a key that its load has passed; the store that knew of it is gone, and reads the log."""
    other = f"{bench.service}_b"
    rule = {"match": [bench.service, other], "publish_as": "together"}
    bench.settings |= {
        "THL_SOURCE__FILTERS__DO": json.dumps([bench.service, other]),
        "THL_SOURCE__FILTERS__TABLES": json.dumps([rule]),
        "THL_SOURCE__SNAPSHOT__ROUND_SECONDS": "0.000001",
    }
    bench.sql(f"CREATE DATABASE {other}; CREATE TABLE {other}.t LIKE {bench.service}.t")
    fill(bench)
    bench.sql(f"ALTER TABLE {other}.t MODIFY v VARCHAR(200) NOT NULL DEFAULT 'clear'")
    bench.sql(f"INSERT INTO {other}.t VALUES (-1, 1, 'first'), (9000, 1, 'last')")
    with bench.start(THL_STOP_POINT="load.mid_round:6") as producing:
        until(lambda: stopped(producing))
        partial(bench, f"UPDATE t SET id = 3 WHERE id = {ROWS + 900}; UPDATE {other}.t SET id = -2 WHERE id = 9000")
        go_on(producing)
        until(lambda: moved(bench) == 2 or producing.process.poll() is not None)
        producing.process.kill()
    shutil.rmtree(store(bench))
    with bench.start() as producing:
        producing.loaded()
        assert CAUGHT_UP in producing.text
        publish(bench, producing, "UPDATE t SET a = 0 WHERE id = 3")
        assert producing.stop() == 0, producing.text
    rows: dict[int, Any] = {}
    for _, gone, there in changes_of(bench, -1):
        if gone is not None:
            rows.pop(gone["id"], None)
        if there is not None:
            rows[there["id"]] = there
    expected = bench.sql(f"SELECT id FROM {bench.service}.t UNION ALL SELECT id FROM {other}.t").splitlines()[1:]
    assert sorted(rows) == sorted(map(int, expected))
    assert "a table is read once more" in producing.text


def moved(bench: Bench) -> int:
    """The number of rows that changed their keys before their load brought them: deletes."""
    return sum(action is Action.DELETE for action, *_ in changes_of(bench, -1))


def test_a_load_that_is_asked_for_does_not_stop_because_of_the_store(bench: Bench) -> None:
    """Damage is found within a round of a load: it is no fault of the table."""
    bench.settings["THL_SOURCE__SNAPSHOT__CHUNK_ROWS"] = "1000"
    fill(bench)
    with bench.start() as producing:
        assert producing.loaded().stop() == 0
    flip_rows(store(bench))
    assert asked(bench, f"{bench.service}.t") == 0
    with bench.start() as producing:
        producing.online()
        until(lambda: " loaded a table " in producing.text or producing.process.poll() is not None)
        assert "the load of a table has stopped" not in producing.text
        assert producing.stop() == 0, producing.text
    assert verify_store(bench.config)[0] > ROWS


def test_create_if_not_exists_of_a_table_that_the_store_does_not_know_gives_no_defaults(bench: Bench) -> None:
    bench.settings["THL_SOURCE__START"] = "now"
    again = "CREATE TABLE IF NOT EXISTS {} (id INT PRIMARY KEY, a INT DEFAULT 9, v VARCHAR(20) NOT NULL DEFAULT 'new')"
    with bench.start() as producing:
        producing.online()
        publish(bench, producing, f"{again.format('fresh')}; INSERT INTO fresh (id) VALUES (1)")
        assert [row for *_, row in changes_of(bench, -1, "fresh")] == [{"id": 1, "a": 9, "v": "new"}]
        before = last_seqno(bench)
        partial(bench, f"{again.format('t')}; INSERT INTO t (id) VALUES (7)")
        assert producing.ended() != 0
    assert "no value for column a, and its default is not known" in producing.text
    assert asked(bench, f"{bench.service}.t") == 0
    with bench.start() as producing:
        assert producing.loaded().stop() == 0
    rows = [row for *_, row in changes_of(bench, before) if row is not None and row["id"] == 7]
    assert rows == [{"id": 7}, {"id": 7, "a": None, "v": "clear"}]
