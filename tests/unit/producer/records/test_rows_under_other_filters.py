"""Rows that later epochs publish otherwise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from connector.config.source import Source
from connector.errors import Unsupported
from connector.log.ids import Action, Epoch, Kind, Outcome, Seqno
from connector.log.transaction.batch import TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.position import SourcePosition
from connector.producer.records.completion import EventCompleter
from connector.producer.records.filter_history import FilterHistory
from connector.records.database import Database
from connector.records.versions import Versions
from tests.unit.producer.records.event_log import (
    CREATE,
    LAYOUT,
    LOG,
    MASK,
    NAME,
    Log,
    filtered,
    insert,
    rows,
    update,
    values,
)


def test_rows_from_before_another_rule_are_not_known(masked: Log, caplog: pytest.LogCaptureFixture) -> None:
    masked.epoch = 2
    other = rows(Action.UPDATE, ({0: 1}, {1: 11}), layout=replace(LAYOUT, name=TableName("shop", "n")))
    (found,) = masked.event(other)
    assert values(found) == [([1, 10, "clear"], [1, 11, "clear"])]  # its table has no rule
    assert [record.__dict__["table"] for record in caplog.records] == [NAME]
    assert "thl load brings them back" in caplog.text
    with pytest.raises(Unsupported, match="publish it otherwise since event 1"):
        masked.event(update(({0: 1}, {1: 11})))
    masked.completion.go_back(Seqno(masked.seqno - 1))
    masked.event(rows(Action.UPDATE, ({0: 1, 1: 10, 2: "x"}, {0: 1, 1: 12, 2: "x"})))  # whole, by the new rule
    (found,) = masked.event(update(({0: 1}, {1: 13})))
    assert values(found) == [([1, 12, "x"], [1, 13, "x"])]
    (found,) = masked.event(insert({0: 2}))
    assert values(found) == [(None, [2, 5, "d"])]  # its defaults are known


def test_rows_from_before_an_epoch_without_events_that_left_their_table_out_are_not_known(masked: Log) -> None:
    masked.epoch = 4
    with pytest.raises(Unsupported, match="does not know the row"):
        masked.event(update(({0: 1}, {1: 11})))


def test_another_rule_counts_again_after_going_back_over_it(masked: Log) -> None:
    masked.epoch = 2
    for _ in range(2):
        masked.completion.enter(Epoch(2), Seqno(masked.seqno))
        assert not list(masked.completion.versions.rows(masked.completion.tables.entry(NAME).prefix))
        masked.completion.go_back(Seqno(masked.seqno - 1))
    masked.event()
    masked.completion.go_back(Seqno(masked.seqno - 2))
    masked.seqno -= 1
    masked.epoch = 1
    (found,) = masked.event(update(({0: 1}, {1: 11})))
    assert values(found) == [([1, 10, "clear"], [1, 11, "clear"])]
    masked.epoch = 2
    masked.event(kind=Kind.HEARTBEAT)
    with pytest.raises(Unsupported, match="does not know the row"):
        masked.event(update(({0: 1}, {1: 11})))


@pytest.mark.parametrize("outcome", [Outcome.COMMIT, Outcome.VOID, None])
def test_another_rule_counts_in_events_that_are_read_from_the_log(masked: Log, outcome: Outcome | None) -> None:
    end = None if outcome is None else TransactionEnd(SourcePosition("f", 9), 0, outcome)
    begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {})
    if end is None:  # a trapped event
        masked.completion.pass_over(Seqno(masked.seqno), Epoch(2))
    else:
        masked.completion.follow(TransactionBatch(begin, [], end), Seqno(masked.seqno), Epoch(2))
    masked.seqno += 1
    masked.close()
    masked.open()
    masked.epoch = 2
    with pytest.raises(Unsupported, match="publish it otherwise"):
        masked.event(update(({0: 1}, {1: 11})))


def test_a_table_that_was_left_out_has_no_defaults_from_before(masked: Log) -> None:
    """Its definition may have changed unseen."""
    keyless = TableLayout(TableName("shop", "t2"), LAYOUT.columns)
    masked.completion._history = FilterHistory(filtered({}, {}, {"ignore": ["shop.t", "shop.t2"]}, {}))
    masked.ddl(CREATE.replace("shop.t", "shop.t2").replace(" PRIMARY KEY", ""))
    masked.epoch = 4
    with pytest.raises(Unsupported, match="its default is not known"):
        masked.event(insert({0: 2}))
    masked.completion.go_back(Seqno(masked.seqno - 1))
    with pytest.raises(Unsupported, match="its default is not known"):
        masked.event(rows(Action.INSERT, (None, {0: 2}), layout=keyless))


def test_a_new_column_has_its_value_as_a_rule_publishes_it(tmp_path: Path) -> None:
    log = Log(tmp_path / "store")
    rules = {"tables": [{"match": ["shop.t"], "mask": {"secret*": {"fixed": "***"}}}]}
    log.completion.close()
    database = Database(log.folder, cache_bytes=1 << 20)
    versions = Versions(database, LOG, horizon=1_000_000, cache_bytes=1 << 20)
    filters = Source.model_validate({"filters": rules}).filters
    log.completion = EventCompleter(versions, filters=filters)
    log.ddl(CREATE)
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.ddl(
        "ALTER TABLE shop.t ADD COLUMN secret VARCHAR(9) CHARSET utf8mb4 DEFAULT 'clear', ADD COLUMN n INT DEFAULT 3"
    )
    layout = TableLayout(
        NAME, (*LAYOUT.columns, Column("secret", "varchar(9)", charset="utf8mb4"), Column("n", "int")), (0,)
    )
    (found,) = log.event(rows(Action.UPDATE, ({0: 1}, {1: 11}), layout=layout))
    assert values(found) == [([1, 10, "one", "***", 3], [1, 11, "one", "***", 3])]
    log.close()


def test_rows_of_an_xa_transaction_that_was_prepared_under_other_filters_are_not_known(masked: Log) -> None:
    """Read from the log of a time without a store, which let filters change meanwhile."""
    masked.epoch = 2
    masked.event(insert({0: 3, 1: 1, 2: "x"}))
    end = TransactionEnd(SourcePosition("f", 9), 0, Outcome.COMMIT)
    begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {"xa_prepared": "f:1"})
    masked.completion.follow(
        TransactionBatch(begin, [insert({0: 4, 1: 1, 2: "clear"})], end), Seqno(masked.seqno), Epoch(2)
    )
    masked.seqno += 1
    with pytest.raises(Unsupported, match=r"prepared under other source\.filters"):
        masked.event(update(({0: 4}, {1: 2})))


def test_another_rule_counts_for_rows_that_are_known_by_a_unique_key(tmp_path: Path) -> None:
    log = Log(tmp_path / "s", epochs=filtered({}, MASK))
    log.ddl(CREATE.replace("PRIMARY KEY", "UNIQUE"))
    log.event(insert({0: 1, 1: 10, 2: "clear"}))
    log.epoch = 2
    with pytest.raises(Unsupported, match="publish it otherwise"):
        log.event(update(({0: 1}, {1: 11})))
    log.close()
