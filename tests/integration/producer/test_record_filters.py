"""Filters that change beside a record store: no image is completed with what other filters have published."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from connector.errors import PreflightError, Unsupported
from connector.log.ids import Action
from connector.producer.records.report import report
from tests.integration.producer.test_produce_xa import pending
from tests.integration.producer.test_table_loads import SMALL_ROUNDS, events
from tests.support.producing import Bench, Producing, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.written_tables import asked

LOADED = " loaded a table "


@pytest.fixture
def bench(mysql_server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> Bench:
    made = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SMALL_ROUNDS))
    made.settings |= {"THL_SOURCE__START": "snapshot", "THL_SOURCE__RECORDS__DIR": str(tmp_path / "records")}
    made.sql(
        f"CREATE DATABASE {made.service}; USE {made.service};"
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, v VARCHAR(20) NOT NULL DEFAULT 'clear');"
        "INSERT INTO t VALUES (1, 1, 'one'), (2, 2, 'two'); CREATE TABLE other (id INT PRIMARY KEY)"
    )
    return made


def partial(bench: Bench, sql: str) -> str:
    """Execute changes with partial images; return the name of a table that is created after them."""
    name = f"mark_{uuid.uuid4().hex[:8]}"
    bench.sql(
        f"USE {bench.service}; SET SESSION binlog_row_image = MINIMAL; {sql}; CREATE TABLE {name} (id INT PRIMARY KEY)"
    )
    return name


def publish(bench: Bench, producing: Producing, sql: str) -> None:
    """Execute changes with partial images, and wait until the log has them."""
    name = partial(bench, sql)

    def has_it() -> bool:
        assert producing.process.poll() is None, producing.text
        return any(name in str(list(event.changes)) for event in events(bench))

    until(has_it)


def changes_of(bench: Bench, after: int, table: str = "t") -> list[tuple[Action, Any, Any]]:
    """The rows of a table in later events: the columns that are there."""
    return [
        (change.action, row.before, row.after)
        for event in events(bench)
        if event.seqno > after
        for change in event.changes
        if getattr(change, "table", "") == table
        for row in change.rows
    ]


def last(bench: Bench) -> int:
    return max(event.seqno for event in events(bench))


def loaded_once_more(bench: Bench, sql: str) -> str:
    """Load the table, then execute changes with partial images; return what the producer said."""
    with bench.start() as producing:
        producing.online()
        until(lambda: LOADED in producing.text or producing.process.poll() is not None)
        publish(bench, producing, sql)
        assert producing.stop() == 0, producing.text
        return producing.text


def changed_while_left_out(bench: Bench, sql: str) -> int:
    """Load the table, and execute a statement while it is left out; return the last event before that."""
    with bench.start() as producing:
        assert producing.loaded().stop() == 0
    before = last(bench)
    with bench.start(THL_SOURCE__FILTERS__IGNORE=json.dumps([f"{bench.service}.t"])) as producing:
        producing.online()
        bench.sql(sql)
        assert producing.stop() == 0
    return before


def test_a_mask_that_is_new_is_not_undone_by_what_the_store_had(bench: Bench) -> None:
    with bench.start() as producing:
        producing.loaded()
        publish(bench, producing, "UPDATE t SET a = 10 WHERE id = 1")
        assert producing.stop() == 0
    assert changes_of(bench, -1)[-1][2] == {"id": 1, "a": 10, "v": "one"}
    before = last(bench)
    rule = {"match": [f"{bench.service}.t"], "mask": {"v": {"fixed": "x"}}}
    bench.settings["THL_SOURCE__FILTERS__TABLES"] = json.dumps([rule])
    partial(bench, "UPDATE t SET a = 11 WHERE id = 1")
    with bench.start() as producing:
        assert producing.ended() == Unsupported.exit_code
        assert f"drops the rows of a table: thl load brings them back table={bench.service}.t" in producing.text
        assert f"since event {before + 1}" in producing.text

    assert asked(bench, f"{bench.service}.t") == 0
    loaded_once_more(bench, "UPDATE t SET a = 12 WHERE id = 1; INSERT INTO t (id) VALUES (3)")

    found = changes_of(bench, before)
    assert [after for action, _, after in found if action is Action.READ] == [
        {"id": 1, "a": 11, "v": "x"},
        {"id": 2, "a": 2, "v": "x"},
    ]
    assert found[0] == (Action.UPDATE, {"id": 1}, {"a": 11})  # the table was not loaded yet
    assert found[-2:] == [
        (Action.UPDATE, {"id": 1, "a": 11, "v": "x"}, {"id": 1, "a": 12, "v": "x"}),
        (Action.INSERT, None, {"id": 3, "a": None, "v": "x"}),
    ]
    (stored,) = [one for one in report(bench.config).tables if one.entry.table.name.table == "t"]
    assert (stored.rows, stored.missing) == (3, "")


def test_a_table_that_was_left_out_has_no_rows_from_before(bench: Bench) -> None:
    before = changed_while_left_out(bench, f"UPDATE {bench.service}.t SET v = 'unseen'")
    partial(bench, "UPDATE t SET a = 20 WHERE id = 2")  # before the first event of the load

    said = loaded_once_more(bench, "UPDATE t SET a = 21 WHERE id = 2")

    assert "drops the rows of a table" in said
    assert changes_of(bench, before)[-1] == (
        Action.UPDATE,
        {"id": 2, "a": 20, "v": "unseen"},
        {"id": 2, "a": 21, "v": "unseen"},
    )


@pytest.mark.long
def test_filters_do_not_change_beside_a_store_while_xa_transactions_are_prepared(bench: Bench) -> None:
    """The prepared rows are those of the earlier filters, and would be taken for rows of the new ones."""
    with bench.start() as producing:
        producing.loaded()
        bench.sql(f"USE {bench.service}; XA START 'w'; UPDATE t SET a = 30 WHERE id = 1; XA END 'w'; XA PREPARE 'w'")
        until(lambda: pending(bench) != [])
        assert producing.stop() == 0
    rule = {"match": [f"{bench.service}.t"], "mask": {"v": {"fixed": "x"}}}
    masked = {"THL_SOURCE__FILTERS__TABLES": json.dumps([rule])}
    try:
        with bench.start(**masked) as producing:
            assert producing.ended() == PreflightError.exit_code
            assert "source.filters have changed while XA transactions are prepared" in producing.text
    finally:
        bench.sql("XA COMMIT 'w'")
    with bench.start() as producing:
        until(lambda: pending(bench) == [])
        assert producing.stop() == 0
    with bench.start(**masked) as producing:
        assert producing.online().stop() == 0


def test_a_table_whose_definition_changed_unseen_has_no_default_from_before_and_its_load_begins(bench: Bench) -> None:
    """An insert of before the load lacks a column: completed, it would have the default of before, without a word."""
    before = changed_while_left_out(bench, f"ALTER TABLE {bench.service}.t ALTER COLUMN v SET DEFAULT 'unseen'")
    partial(bench, "INSERT INTO t (id) VALUES (9)")

    loaded_once_more(bench, "UPDATE t SET a = 1 WHERE id = 9")

    found = changes_of(bench, before)
    assert found[0] == (Action.INSERT, None, {"id": 9})
    assert found[-1] == (Action.UPDATE, {"id": 9, "a": None, "v": "unseen"}, {"id": 9, "a": 1, "v": "unseen"})


@pytest.mark.long
def test_a_store_does_not_begin_while_xa_transactions_of_other_filters_are_prepared(bench: Bench) -> None:
    """They were prepared, and the filters changed, without a store."""
    without = {"THL_SOURCE__RECORDS__DIR": ""}
    with bench.start(**without) as producing:
        producing.loaded()
        bench.sql(f"USE {bench.service}; XA START 'e'; UPDATE t SET a = 30 WHERE id = 1; XA END 'e'; XA PREPARE 'e'")
        until(lambda: pending(bench) != [])
        assert producing.stop() == 0
    rule = {"match": [f"{bench.service}.t"], "mask": {"v": {"fixed": "x"}}}
    masked = {"THL_SOURCE__FILTERS__TABLES": json.dumps([rule])}
    try:
        with bench.start(**without, **masked) as producing:
            assert producing.online().stop() == 0
        with bench.start(**masked) as producing:
            assert producing.ended() == PreflightError.exit_code
            assert "without source.records.dir publish them under these" in producing.text
    finally:
        bench.sql("XA COMMIT 'e'")
    with bench.start(**without, **masked) as producing:
        until(lambda: pending(bench) == [])
        assert producing.stop() == 0
    with bench.start(**masked) as producing:
        producing.online()
        assert "an XA transaction was prepared under other source.filters than it was committed" in producing.text
        assert producing.stop() == 0


@pytest.mark.long
def test_a_hash_key_that_changes_under_a_running_producer_ends_it(bench: Bench) -> None:
    key = bench.folder / "hash.key"
    key.write_text("k" * 32)
    key.chmod(0o600)
    rule = {"match": [f"{bench.service}.t"], "mask": {"v": {"hash": 16}}}
    bench.settings |= {
        "THL_SOURCE__FILTERS__TABLES": json.dumps([rule]),
        "THL_SOURCE__FILTERS__HASH_KEY_FILE": str(key),
    }
    with bench.start() as producing:
        producing.loaded()
        key.write_text("l" * 32)
        dumps = bench.sql("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
        bench.sql("; ".join(f"KILL {number}" for number in dumps.split()[1:]))
        assert producing.ended() == PreflightError.exit_code
        assert "the hash key has changed since the producer began" in producing.text
