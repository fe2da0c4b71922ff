"""A log that continues without trapped events: which forks are accepted, and which readers are refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.errors import HistoriesDiffer, LogDamaged, Unsupported
from connector.kafka.records import control_message, control_state
from connector.log.epochs.control import ControlState
from connector.log.epochs.fork import (
    Accepted,
    Forked,
    LoggedEvent,
    Range,
    accept,
    outside,
    overlaps,
    parse_ranges,
    ranges_of,
    ranges_text,
)
from connector.log.epochs.history import History
from connector.log.ids import Epoch, Kind, LogId, Seqno
from connector.log.reading.event_sequencer import EventSequencer, Release, Voided
from connector.log.rules import Rule
from connector.log.transaction.definition import Definitions, TableDefinition
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.pending import Pending
from connector.log.transaction.position import PositionRecord, SourcePosition, TargetPosition
from connector.log.writing.online import SourceFound, TailFound, comparable, decide
from tests.support.broken_rules import breaks
from tests.support.log_objects import LOG, UUID, control, finished, header, marker, position
from tests.unit.log.reading.test_event_sequencer import released

NEW = "5e11fa47-71ca-11e1-9e33-c80aa9429563"
LOST = f"{UUID}:8-9"  # of the events 7 and 8
FORKED = Forked(LOST, (Range(Seqno(7), Seqno(8)),))
SOURCE = SourceFound(
    source_id="db2:3306",
    server_uuid=NEW,
    now=7,
    log_id=LogId("b" * 32),
    start=SourcePosition("mysql-bin.000001", 4),
    executed=f"{UUID}:1-7,{NEW}:1",
)
EVENTS = [LoggedEvent(seqno=Seqno(s), epoch=Epoch(2), gtid=f"{UUID}:{s + 1}", kind=Kind.TRANSACTION) for s in (7, 8)]
TAILS = {0: TailFound(Seqno(8), Epoch(2), 0, 30)}


def at() -> PositionRecord:
    return position(8, 2)


@given(st.sets(st.integers(0, 40)))
def test_ranges_have_exactly_the_seqnos(seqnos: set[int]) -> None:
    ranges = ranges_of(map(Seqno, seqnos))
    assert parse_ranges(ranges_text(ranges), "t-0@0") == ranges
    assert {s for s in range(41) if overlaps(ranges, Seqno(s), Seqno(s))} == seqnos
    assert all(before.last + 1 < after.first for before, after in pairwise(ranges))


@given(st.sets(st.integers(0, 40)), st.integers(0, 41), st.integers(-1, 41))
def test_seqnos_outside_of_ranges_are_counted(seqnos: set[int], first: int, last: int) -> None:
    ranges = ranges_of(map(Seqno, seqnos))
    assert outside(ranges, Seqno(first), Seqno(last)) == len(set(range(first, last + 1)) - seqnos)
    assert outside((*ranges, *ranges), Seqno(first), Seqno(last)) == outside(ranges, Seqno(first), Seqno(last))


def test_malformed_range_is_refused() -> None:
    with pytest.raises(LogDamaged):
        parse_ranges("6-x", "t-0@0")


def test_trapped_transactions_are_listed_with_their_events() -> None:
    assert accept(at(), LOST, EVENTS) == Accepted(FORKED)
    assert accept(at(), LOST, []).forked == Forked(LOST, ())  # only passed over
    assert accept(at(), LOST, [replace(EVENTS[0], kind=Kind.DDL)]).definition == 7


def prepared(gtid: str) -> Pending:
    start = SourcePosition("mysql-bin.000001", 4)
    return Pending(xid="X'61',X'',1", attempt="2.1", batches=1, messages=1, gtid=gtid, start=start, time=0)


def test_fork_that_cannot_be_undone_is_refused() -> None:
    with pytest.raises(HistoriesDiffer) as refused:
        accept(at(), LOST, EVENTS, [prepared(f"{UUID}:9")])
    assert refused.value.where == {
        "rule": Rule.FORK_WITHOUT_PREPARE,
        "xid": "X'61',X'',1",
        "gtid": f"{UUID}:9",
    }
    accept(at(), LOST, EVENTS, [prepared(f"{UUID}:3")])
    with breaks(Rule.FORK_WITHOUT_COMMIT, HistoriesDiffer, seqno=7, prepared=f"{UUID}:2"):
        accept(at(), LOST, [replace(EVENTS[0], xa_prepared=f"{UUID}:2")])
    accept(at(), LOST, [replace(EVENTS[1], xa_prepared=f"{UUID}:8")])
    with pytest.raises(HistoriesDiffer) as refused:
        accept(replace(at(), snapshot=True), LOST, EVENTS)
    assert refused.value.where == {"rule": Rule.FORK_WITHIN_LOAD, "trapped": LOST}
    assert "another `service`" in refused.value.hint
    with breaks(Rule.FORK_OF_ANOTHER_SERVER, HistoriesDiffer) as refused:
        accept(at(), f"{UUID}:1-9", EVENTS)
    assert "source.host" in refused.value.hint
    with pytest.raises(Unsupported):
        accept(replace(at(), gtid_set="0-1-9"), "0-1-8..9", EVENTS)


def test_producer_continues_only_with_accepted_trapped_transactions() -> None:
    with pytest.raises(HistoriesDiffer) as refused:
        decide(control(0, 5), at(), TAILS, SOURCE)
    assert refused.value.where["trapped"] == LOST
    assert "--accept-trapped" in refused.value.hint

    plan = decide(control(0, 5), at(), TAILS, SOURCE, accepted=Accepted(FORKED))
    assert (plan.epoch.epoch, plan.epoch.first_seqno, plan.epoch.reason) == (3, 9, "forked")
    assert plan.epoch.forked == FORKED
    assert plan.epoch.gtid_set == plan.position.gtid_set == f"{UUID}:1-7"
    assert replace(plan.position, gtid_set=at().gtid_set) == at()
    told = plan.markers[0].metadata
    assert (told["trapped"], told["trapped_events"], told["gtid_set"]) == (LOST, "7-8", f"{UUID}:1-7")
    assert plan.redo is None  # the last event cannot be compared
    assert plan.tables is None

    again = decide(plan.control, plan.position, {0: TailFound(Seqno(8), Epoch(3), 0, 32)}, SOURCE)
    assert again.epoch.forked is None
    assert again.redo is None


def test_accepted_set_that_lacks_a_trapped_transaction_is_refused() -> None:
    with pytest.raises(HistoriesDiffer) as refused:
        decide(control(0, 5), at(), TAILS, SOURCE, accepted=Accepted(Forked(f"{UUID}:9", ())))
    assert refused.value.where["trapped"] == f"{UUID}:8"


def test_tables_are_unknown_after_a_trapped_definition() -> None:
    name = TableName("shop", "t")
    tables = Definitions({name: TableDefinition(TableLayout(name, (), ()), "utf8mb4")}, {"shop": "utf8mb4"})
    knowing = replace(control(0, 5), tables=tables)
    plan = decide(knowing, at(), TAILS, SOURCE, accepted=Accepted(FORKED, Seqno(7)))
    assert plan.tables is not None
    assert "event 7" in (plan.tables.tables[name].unknown or "")
    assert plan.control.tables == plan.tables
    assert decide(knowing, at(), TAILS, SOURCE, accepted=Accepted(FORKED)).tables is None


def forked_control(*firsts: int, forked: Forked = FORKED) -> ControlState:
    """The newest epoch is the fork."""
    state = control(*firsts)
    return replace(state, epochs=(*state.epochs[:-1], replace(state.epochs[-1], forked=forked)))


def test_control_topic_keeps_a_fork() -> None:
    state = forked_control(0, 5, 9)
    messages = [control_message(record) for record in state.epochs]
    assert control_state(messages).epochs == state.epochs
    assert b"forked" not in messages[0][1]
    assert b"filters" not in messages[0][1]


def test_control_topic_keeps_the_filters() -> None:
    first, *others = control(0, 5).epochs
    epochs = (replace(first, filters="0a1b"), *others)
    assert control_state([control_message(record) for record in epochs]).epochs == epochs


def test_last_event_is_compared_unless_it_is_trapped() -> None:
    state = forked_control(0, 5, 9)
    assert comparable(state, at()) is None
    assert comparable(state, position(9, 3)) == finished(9, 3)
    assert comparable(control(0, 5, 9), at()) == finished(8, 2)


def test_target_that_applied_a_trapped_event_is_refused_with_the_list() -> None:
    history = History.of(forked_control(0, 5, 9), Seqno(10))
    for seqno, epoch in ((7, 2), (8, 2)):
        with pytest.raises(HistoriesDiffer) as refused:
            history.prove(LOG, Seqno(seqno), Epoch(epoch), source_id="db1:3306")
        assert (refused.value.where["trapped"], refused.value.where["trapped_events"]) == (LOST, "7-8")
    for seqno, epoch in ((6, 2), (9, 3), (3, 1)):
        history.prove(LOG, Seqno(seqno), Epoch(epoch))


def test_rewound_target_with_a_trapped_event_is_refused() -> None:
    """It was at event 7 or 8, and was taken back to 6 or 3: whether the fork was known then or not."""
    history = History.of(forked_control(0, 5, 9), Seqno(10))
    for seqno, epoch, head in ((6, 2, 7), (6, 2, 8), (3, 1, 8)):
        with pytest.raises(HistoriesDiffer) as refused:
            history.prove(LOG, Seqno(seqno), Epoch(epoch), rewound_from=Seqno(head))
        assert refused.value.where["trapped_events"] == "7-8"
    for seqno, epoch, head in ((6, 2, 9), (3, 1, 10), (3, 1, 6)):  # it was behind the fork already, or before it all
        history.prove(LOG, Seqno(seqno), Epoch(epoch), rewound_from=Seqno(head))


def test_rewound_target_with_a_trapped_event_is_refused_at_the_marker() -> None:
    """It has applied neither 7 nor 8 again when it reads the marker, on another partition."""
    it = sequencer(6, 2, History.of(control(0, 5, count=2), Seqno(8)), partitions=2, rewound_from=8)
    with pytest.raises(HistoriesDiffer) as refused:
        it.accept(fork_marker(prev=6), 1, 12, "m")  # type: ignore[arg-type]
    assert refused.value.where["trapped_events"] == "7-8"


def test_rewound_target_reads_the_marker_of_its_fork_again() -> None:
    it = sequencer(6, 2, None, rewound_from=9)
    it.accept(fork_marker(prev=6), 0, 13, "m")  # type: ignore[arg-type]


def sequencer(
    seqno: int, epoch: int, history: History | None, partitions: int = 1, rewound_from: int = -1
) -> EventSequencer[str, list[str]]:
    target = TargetPosition(
        service="shop", log_id=LOG, seqno=Seqno(seqno), epoch=Epoch(epoch), rewound_from=Seqno(rewound_from)
    )
    return EventSequencer(topic="thl.shop", partitions=partitions, position=target, history=history)


def fork_marker(first: int = 9, *, epoch: int = 3, prev: int = 8) -> object:
    it = marker(epoch, first, prev=prev)
    return replace(it, metadata={**it.metadata, "trapped": LOST, "trapped_events": "7-8"})


def test_trapped_events_are_not_released() -> None:
    it = sequencer(6, 2, History.of(forked_control(0, 5, 9), Seqno(9)))
    it.accept(header(7, epoch=2, last=False), 0, 10, "a")
    assert released(it) == []
    it.accept(header(7, 1, epoch=2, rows=2), 0, 11, "b")
    it.accept(header(8, epoch=2), 0, 12, "c")
    assert released(it) == []
    assert it.resumable(Seqno(6)) == {0: 10}
    it.accept(fork_marker(), 0, 13, "m")  # type: ignore[arg-type]
    it.accept(header(9, epoch=3), 0, 14, "d")
    assert released(it) == ["9[d]"]
    assert it.resumable(Seqno(9)) == {0: 15}


def test_trapped_barrier_is_still_named_by_later_events() -> None:
    it = sequencer(6, 2, History.of(forked_control(0, 5, 9), Seqno(9)))
    it.accept(header(7, epoch=2, shard="#UNKNOWN"), 0, 10, "a")
    it.accept(header(8, epoch=2, barrier=7), 0, 12, "c")
    it.accept(replace(fork_marker(), last_barrier=7), 0, 13, "m")  # type: ignore[type-var, arg-type]
    it.accept(header(9, epoch=3, barrier=7), 0, 14, "d")
    assert released(it) == ["9[d]"]


def test_reader_that_released_a_trapped_event_is_refused_at_the_marker() -> None:
    it = sequencer(6, 2, History.of(control(0, 5), Seqno(7)))
    it.accept(header(7, epoch=2), 0, 10, "a")
    assert released(it) == ["7[a]"]
    it.accept(header(8, epoch=2), 0, 11, "b")
    with pytest.raises(HistoriesDiffer) as refused:
        it.accept(fork_marker(), 0, 12, "m")  # type: ignore[arg-type]
    assert refused.value.where["trapped_events"] == "7-8"


def test_trapped_event_released_in_part_is_voided_at_the_marker() -> None:
    """Event 7 has been given in part and 8 waits for its end, on another partition, when the marker comes there."""
    it = sequencer(6, 2, History.of(control(0, 5, count=2), Seqno(6)), partitions=2)
    it.accept(header(7, epoch=2, prev=6, last=False), 0, 10, "a")
    it.accept(header(8, epoch=2, prev=-1), 1, 10, "c")
    (part,) = it.release()
    assert isinstance(part, Release)
    it.accept(fork_marker(prev=8), 1, 11, "m")  # type: ignore[arg-type]
    assert [type(item) for item in it.release()] == [Voided]
    it.accept(header(7, 1, epoch=2, prev=6, rows=2), 0, 11, "b")
    it.accept(fork_marker(prev=7), 0, 12, "m")  # type: ignore[arg-type]
    it.accept(header(9, epoch=3, prev=7), 0, 13, "d")
    assert released(it) == ["9[d]"]


def test_target_of_the_newer_epoch_reads_the_marker_again() -> None:
    it = sequencer(9, 3, None)
    it.accept(fork_marker(), 0, 13, "m")  # type: ignore[arg-type]
    it.accept(header(9, epoch=3), 0, 14, "d")
    it.accept(header(10, epoch=3), 0, 15, "e")
    assert released(it) == ["10[e]"]
