"""The last event that a record store and a log have in common."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from connector.config.model import Config
from connector.errors import ConfigError, ConnectorError, RecordsDamaged
from connector.log.epochs.control import ControlState, LogRecord
from connector.log.epochs.fork import Forked, Range
from connector.log.epochs.history import History
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.producer.records.opening import last_shared, open_completion, open_store
from connector.records.database import Database
from connector.records.versions import StoreState
from tests.support.log_objects import epochs

LOG = LogId("c" * 32)


def history(last: int, *firsts: int) -> History:
    return History(LOG, epochs(*firsts), Seqno(last))


def state(seqno: int, *written: tuple[int, int]) -> StoreState:
    return StoreState(LOG, Seqno(seqno), tuple((Seqno(first), Epoch(epoch)) for first, epoch in written))


@pytest.mark.parametrize(
    ("found", "log", "shared"),
    [
        (state(7, (0, 1)), history(7, 0), 7),
        (state(5, (0, 1)), history(7, 0), 5),  # it is behind
        (state(9, (0, 1)), history(7, 0), 7),  # it has events that were never finished
        (state(12, (0, 1)), history(15, 0, 10), 9),  # what it has of 10 was given up, and written again
        (state(12, (0, 1), (10, 2)), history(15, 0, 10), 12),
        (state(12, (0, 1), (11, 2)), history(15, 0, 10), 9),  # 10 is of the given up attempt
        (state(12, (0, 1), (5, 7)), history(15, 0), 4),  # an epoch that the log does not have
        (StoreState(LOG), history(15, 0, 10), NO_SEQNO),
        (state(3, (0, 1)), history(-1, 0), NO_SEQNO),
        (state(5, (0, 1)), history(9, 0, 0), -1),  # the first event was given up, too
    ],
)
def test_the_last_event_that_store_and_log_have_in_common(found: StoreState, log: History, shared: int) -> None:
    assert last_shared(found, log) == shared


def test_a_store_with_trapped_events_goes_back_to_before_them() -> None:
    first, second = epochs(0, 20)
    second = replace(second, forked=Forked(trapped="u:15-17", events=(Range(Seqno(15), Seqno(17)),)))
    log = History(LOG, (first, second), Seqno(30))
    assert last_shared(state(19, (0, 1)), log) == 14
    assert last_shared(state(14, (0, 1)), log) == 14
    assert last_shared(state(25, (0, 1), (20, 2)), log) == 14
    assert last_shared(state(25, (0, 1), (15, 2)), log) == 25  # it has read the log without them
    unforked = History(LOG, (first,), Seqno(19))
    assert last_shared(state(19, (0, 1), (15, 2)), unforked) == 14  # the fork was never written


def test_a_store_of_another_log_is_not_used() -> None:
    with pytest.raises(RecordsDamaged, match="another log"):
        last_shared(replace(state(3, (0, 1)), log_id=LogId("d" * 32)), history(5, 0))


def umask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found


def test_an_opening_that_fails_leaves_the_store_closed(tmp_path: Path) -> None:
    records = {"dir": tmp_path / "records"}
    kafka = {"properties": {"no.such.property": "1"}}  # the log cannot be read
    config = Config.model_validate({"service": "shop", "source": {"records": records}, "kafka": kafka})
    open_store(config, LOG).close()
    before = umask()
    with pytest.raises(ConnectorError, match=r"no\.such\.property"):
        open_completion(config, ControlState(LogRecord(LOG, 1), None, tuple(epochs(0))), Seqno(7), Event())
    assert umask() == before
    open_store(config, LOG).close()  # no process has it open


def test_a_store_that_cannot_be_opened_leaves_the_umask(tmp_path: Path) -> None:
    open_one = Database(tmp_path / "s", cache_bytes=1 << 20)
    os.umask(0o027)
    with pytest.raises(ConfigError, match="another process"):
        Database(tmp_path / "s", cache_bytes=1 << 20)
    found = umask()
    open_one.close()  # which restores the one before
    assert found == 0o027
