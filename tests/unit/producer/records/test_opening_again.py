"""A store that is opened goes back, reads the log, or begins again; events of the log come from a stand-in for Kafka.

`tests/integration/producer/test_record_stores.py` does the same with brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from connector.config.model import Config
from connector.errors import ConfigError, RecordsDamaged, Unsupported
from connector.log.epochs.control import ControlState, EpochRecord, LogRecord
from connector.log.epochs.fork import Forked, Range
from connector.log.epochs.history import History
from connector.log.ids import NO_SEQNO, Action, Epoch, Kind, LogId, Outcome, Seqno
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.layout import Column, TableLayout
from connector.log.transaction.position import SourcePosition
from connector.producer.records import catch_up, opening
from connector.producer.records.completion import EventCompleter
from connector.producer.records.opening import open_completion, open_store, rebuild
from connector.retrying import Stopped
from tests.support.log_objects import epochs
from tests.unit.producer.records.event_log import (
    CREATE,
    LAYOUT,
    LOG,
    MASK,
    NAME,
    filtered,
    insert,
    rows,
    update,
    values,
)

LoggedEvent = tuple[Kind, Rows | Statement | None]
NOTHING: LoggedEvent = (Kind.HEARTBEAT, None)
DEFINED: LoggedEvent = (Kind.DDL, Statement("shop", CREATE, {}))
ROW: LoggedEvent = (Kind.TRANSACTION, insert({0: 1, 1: 10, 2: "one"}))


def batch(kind: Kind, *changes: Rows | Statement | None) -> TransactionBatch:
    begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), kind, {})
    end = TransactionEnd(SourcePosition("f", 9), 0, Outcome.COMMIT)
    return TransactionBatch(begin, [change for change in changes if change is not None], end)


class Kafka:
    """The events of a log, of which retention may have deleted the first."""

    def __init__(self) -> None:
        self.events: list[LoggedEvent] = [DEFINED, ROW, *[NOTHING] * 40]
        self.first = 0
        self.reads: list[int] = []  # the first event of each reading
        self.damaged = 0  # readings in which the store turns out to be damaged

    def first_event(self, _: Config, __: History) -> Seqno:
        return Seqno(self.first)

    def read_events(
        self, _: Config, control: ControlState, completion: EventCompleter, last: Seqno, stop: Event
    ) -> int:
        start = Seqno(completion.versions.state.seqno + 1)
        self.reads.append(start)
        assert start >= self.first
        if stop.is_set():
            raise Stopped
        if self.damaged:
            self.damaged -= 1
            raise RecordsDamaged("the record store is damaged")
        history = History.of(control, last)
        for seqno in range(start, last + 1):
            epoch = history.epoch_without_trapped(Seqno(seqno))
            completion.follow(batch(*self.events[seqno]), Seqno(seqno), epoch)
        completion.versions.flush()
        return last + 1 - start


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    made = Kafka()
    monkeypatch.setattr(opening, "first_event", made.first_event)
    monkeypatch.setattr(opening, "read_events", made.read_events)
    return made


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return configured(tmp_path)


def configured(folder: Path, **source: Any) -> Config:
    return Config.model_validate({"service": "shop", "source": {"records": {"dir": folder / "records"}, **source}})


def control(*records: EpochRecord, log: LogId = LOG) -> ControlState:
    return ControlState(LogRecord(log, 1), None, tuple(records))


def planned(last: int, *firsts: int, log: LogId = LOG) -> ControlState:
    """The control records of a log that ends with an event, with the epoch that is planned after it."""
    return control(*epochs(*(firsts or (0,)), last + 1), log=log)


@pytest.fixture
def opened() -> Iterator[Callable[..., EventCompleter]]:
    """Opens a store; the one that was opened before is closed."""
    last: list[EventCompleter] = []

    def open_one(config: Config, given: ControlState, seqno: int) -> EventCompleter:
        while last:
            last.pop().close()
        found = open_completion(config, given, Seqno(seqno), Event())
        assert found is not None
        last.append(found)
        return found

    yield open_one
    while last:
        last.pop().close()


Opened = Callable[..., EventCompleter]


def test_a_store_that_is_behind_reads_what_it_lacks(kafka: Kafka, config: Config, opened: Opened) -> None:
    for last in (3, 3, 9):
        opened(config, planned(last), last)
    assert kafka.reads == [0, 4]


def test_a_fork_that_was_planned_in_vain_leaves_none_of_its_events(
    kafka: Kafka, config: Config, opened: Opened
) -> None:
    """The store has read the log under it before the epoch was written, and its number is planned again."""
    first, second = epochs(0, 20)

    def forked(*trapped: int) -> ControlState:
        ranges = (Range(Seqno(trapped[0]), Seqno(trapped[1])),)
        return control(first, replace(second, forked=Forked(trapped="u:1", events=ranges)))

    opened(config, forked(15, 17), 19)
    store = opened(config, forked(15, 16), 19)
    assert kafka.reads == [0, 15]
    assert store.versions.state.epochs == ((0, 1), (15, 2))


@pytest.mark.parametrize("oldest", [6, 7])
def test_a_store_whose_next_event_retention_has_deleted_begins_again_at_the_first_that_is_there(
    kafka: Kafka, config: Config, opened: Opened, oldest: int, caplog: pytest.LogCaptureFixture
) -> None:
    opened(config, planned(5), 5)
    kafka.first = oldest
    state = opened(config, planned(9, 0, 6), 9).versions.state
    assert kafka.reads == [0, oldest]
    assert ("begins again" in caplog.text) is (oldest > 6)
    assert (state.seqno, state.oldest) == (9, 0 if oldest == 6 else 7)
    assert state.epoch_of(Seqno(oldest - 1)) == (1 if oldest == 6 else 2)


def test_a_store_that_has_all_events_does_not_ask_for_the_first(kafka: Kafka, config: Config, opened: Opened) -> None:
    opened(config, planned(5), 5)
    kafka.first = 7
    assert opened(config, planned(5), 5).versions.state.oldest == 0


def test_a_new_store_of_a_log_without_its_first_events_knows_from_which_event_and_epoch_it_is(
    kafka: Kafka, config: Config, opened: Opened
) -> None:
    kafka.first = 7
    state = opened(config, planned(9, 0, 7), 9).versions.state
    assert (state.oldest, state.epochs) == (7, ((6, 1), (7, 2)))


def test_a_store_of_a_new_log_has_nothing(kafka: Kafka, config: Config, opened: Opened) -> None:
    state = opened(config, control(*epochs(0)), NO_SEQNO).versions.state
    assert (state.seqno, state.oldest, state.epochs, kafka.reads) == (NO_SEQNO, 0, (), [])


def test_a_store_that_is_damaged_while_it_reads_the_log_is_discarded_and_read_again(
    kafka: Kafka, config: Config, opened: Opened
) -> None:
    opened(config, planned(3), 3)
    kafka.damaged = 1
    opened(config, planned(9), 9)
    assert kafka.reads == [0, 4, 0]


def test_a_damaged_store_that_cannot_be_written_either_is_read_again(
    kafka: Kafka, config: Config, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(config, planned(3), 3)
    kafka.damaged = 1

    def refuses(*_: object, **__: object) -> None:
        raise RecordsDamaged("the record store is damaged")

    def read(given: Config, state: ControlState, completion: EventCompleter, last: Seqno, stop: Event) -> int:
        if kafka.damaged:
            monkeypatch.setattr(completion.versions._database, "write", refuses)
        return kafka.read_events(given, state, completion, last, stop)

    monkeypatch.setattr(opening, "read_events", read)
    opened(config, planned(9), 9)
    assert kafka.reads == [0, 4, 0]


def test_a_store_that_is_damaged_again_is_closed(kafka: Kafka, config: Config, opened: Opened) -> None:
    kafka.damaged = 2
    with pytest.raises(RecordsDamaged):
        opened(config, planned(9), 9)
    opened(config, planned(9), 9)  # no process has it open


def test_a_store_of_another_log_begins_again(kafka: Kafka, config: Config, opened: Opened) -> None:
    opened(config, planned(3), 3)
    other = LogId("d" * 32)
    assert opened(config, planned(3, log=other), 3).versions.state.log_id == other
    assert kafka.reads == [0, 0]


def test_a_store_that_a_producer_has_open_keeps_its_files_from_a_rebuilding(kafka: Kafka, config: Config) -> None:
    folder = config.source.records.dir
    assert folder is not None
    running = open_completion(config, planned(3), Seqno(3), Event())
    assert running is not None
    files = set(folder.iterdir())
    with pytest.raises(ConfigError, match="another process has the record store open"):
        rebuild(config, planned(3), Seqno(3))
    assert files <= set(folder.iterdir())
    running.close()
    rebuild(config, planned(3), Seqno(3)).close()
    assert kafka.reads == [0, 0]


def test_a_damaged_store_is_rebuilt(kafka: Kafka, config: Config) -> None:
    open_store(config, LOG).close()
    folder = config.source.records.dir
    assert folder is not None
    (folder / "CURRENT").write_text("damage\n")
    with pytest.raises(RecordsDamaged):
        open_store(config, LOG)
    rebuild(config, planned(3), Seqno(3)).close()
    assert kafka.reads == [0]


@pytest.mark.parametrize("begins_again", [False, True])
def test_filters_that_have_changed_count_when_a_store_is_opened(
    kafka: Kafka, tmp_path: Path, opened: Opened, begins_again: bool
) -> None:
    first, second, third = filtered({}, {}, MASK)
    opened(configured(tmp_path), control(first, replace(second, first_seqno=Seqno(4))), 3)
    if begins_again:
        kafka.damaged = 1
    now = control(first, replace(second, first_seqno=Seqno(4)), replace(third, first_seqno=Seqno(6)))
    store = opened(configured(tmp_path, filters=MASK), now, 5)
    assert kafka.reads == [0, 4, 0][: 2 + begins_again]
    assert not list(store.versions.rows(store.tables.entry(NAME).prefix))
    with pytest.raises(Unsupported, match="publish it otherwise since event 6"):
        store.complete(batch(Kind.TRANSACTION, update(({0: 1}, {1: 11}))), Seqno(6), Epoch(3))


def test_a_store_knows_the_filters_and_the_tables_that_may_stay_partial(
    kafka: Kafka, tmp_path: Path, opened: Opened
) -> None:
    rules = {"tables": [{"match": ["shop.t"], "mask": {"secret": {"fixed": "***"}}}]}
    config = configured(tmp_path, filters=rules)
    records = config.source.records.model_copy(update={"partial": ("shop.t",), "horizon": 123_456})
    config = config.model_copy(update={"source": config.source.model_copy(update={"records": records})})
    kafka.events[2] = (Kind.DDL, Statement("shop", "ALTER TABLE shop.t ADD secret VARCHAR(9) DEFAULT 'clear'", {}))
    store = opened(config, planned(3), 3)
    assert store.versions._horizon == 123_456
    layout = TableLayout(NAME, (*LAYOUT.columns, Column("secret", "varchar(9)", charset="utf8mb4")), (0,))
    known = rows(Action.UPDATE, ({0: 1}, {1: 11}), layout=layout)
    unknown = rows(Action.UPDATE, ({0: 9}, {1: 11}), layout=layout)
    first, second = store.complete(batch(Kind.TRANSACTION, known, unknown), Seqno(4), Epoch(2)).changes
    assert isinstance(first, Rows)
    assert isinstance(second, Rows)
    assert values(first) == [([1, 10, "one", "***"], [1, 11, "one", "***"])]
    assert second.after


def stopped() -> Event:
    stop = Event()
    stop.set()
    return stop


@pytest.mark.parametrize("damaged", [False, True])
def test_a_stop_ends_the_reading_of_the_log_which_the_next_opening_goes_on_with(
    kafka: Kafka, config: Config, opened: Opened, damaged: bool
) -> None:
    if damaged:
        opened(config, planned(3, log=LogId("d" * 32)), 3).close()
    with pytest.raises(Stopped):
        open_completion(config, planned(9), Seqno(9), stopped())
    assert opened(config, planned(9), 9).versions.seqno == 9


def test_events_are_read_until_a_stop(monkeypatch: pytest.MonkeyPatch, config: Config) -> None:
    monkeypatch.setattr(catch_up, "_releases", lambda *_: iter([object()]))
    store = open_store(config, LOG)
    with pytest.raises(Stopped):
        catch_up.read_events(config, planned(9), store, Seqno(9), stopped())
    store.close()
