"""Events that the log has, and changes that are logged as statements."""

from __future__ import annotations

import pytest

from connector.errors import Unsupported
from connector.log.ids import Epoch, Kind, Outcome, Seqno
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.position import SourcePosition
from tests.unit.producer.records.event_log import Log, delete, insert, update, values


def test_a_change_that_is_logged_as_a_statement_stops(log: Log) -> None:
    with pytest.raises(Unsupported, match="logged as a statement") as caught:
        log.event(Statement("shop", "UPDATE t SET a = 1", {}))
    assert "binlog_format" in caught.value.hint


def test_what_is_followed_from_the_log_never_stops(log: Log) -> None:
    end = TransactionEnd(SourcePosition("f", 9), 0, Outcome.COMMIT)
    begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {})
    change = update(({0: 7}, {1: 1}))
    log.completion.follow(TransactionBatch(begin, [change], end), Seqno(log.seqno), Epoch(1))
    log.seqno += 1
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(delete({0: 7}))


def follow(log: Log, *changes: Rows | Statement, outcome: Outcome | None = Outcome.COMMIT, first: bool = True) -> None:
    """Follow a batch that the log has."""
    end = None if outcome is None else TransactionEnd(SourcePosition("f", 9), 0, outcome)
    begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {}) if first else None
    log.completion.follow(TransactionBatch(begin, list(changes), end), Seqno(log.seqno), Epoch(log.epoch))
    log.seqno += end is not None


def test_what_the_log_has_of_an_event_that_was_given_up_changes_no_row(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    follow(log, update(({0: 1}, {1: 11})), outcome=None)
    follow(log, outcome=Outcome.VOID, first=False)
    assert log.completion.versions.seqno == log.seqno - 1
    (found,) = log.event(update(({0: 1}, {2: "uno"})))
    assert values(found) == [([1, 10, "one"], [1, 10, "uno"])]


def test_rows_that_a_statement_in_the_log_may_have_changed_are_not_known(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    follow(log, Statement("shop", "UPDATE t SET a = 1", {}))
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(update(({0: 1}, {2: "uno"})))
