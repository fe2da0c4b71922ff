"""Promise 6 on the target's side: a target is accepted only on the log's own history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from connector.errors import BrokerUnavailable, EventsDeleted, HistoriesDiffer, LogDamaged
from connector.log.epochs.control import ControlState
from connector.log.epochs.fork import Forked, Range
from connector.log.epochs.history import History, check_before, check_offsets
from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, LogId, Seqno
from connector.log.rules import Rule
from connector.log.transaction.position import Intent, TargetPosition
from tests.support.broken_rules import breaks
from tests.support.log_objects import LOG, control

# Epoch 1 gave 0..9; epochs 2 and 3 began at 10 and gave nothing and 10..14; epoch 4 began at 15 and gave 15.
TOLD = History.of(control(0, 10, 10, 15), Seqno(15))


@pytest.mark.parametrize(("seqno", "epoch"), [(0, 1), (9, 1), (10, 3), (14, 3), (15, 4)])
def test_event_belongs_to_the_newest_epoch_that_may_have_given_it(seqno: int, epoch: int) -> None:
    assert TOLD.covering(Seqno(seqno)).epoch == epoch
    TOLD.prove(LOG, Seqno(seqno), Epoch(epoch))


def test_position_before_a_fork_is_proved_from_its_first_trapped_event() -> None:
    """Epoch 2 goes on without 4, 5 and 7 (6 it has); epoch 3 without what was only passed over; epoch 5 without 12."""
    told = control(0, 10, 11, 12, 14)
    without = {1: (Range(Seqno(4), Seqno(5)), Range(Seqno(7), Seqno(7))), 2: (), 4: (Range(Seqno(12), Seqno(12)),)}
    epochs = tuple(
        replace(record, forked=Forked("u:1", without[at]) if at in without else None)
        for at, record in enumerate(told.epochs)
    )
    history = History.of(replace(told, epochs=epochs), Seqno(16))
    moved = {}
    for first in range(1, 18):
        begins = history.beginning(Seqno(first))
        if begins != first:
            moved[first] = int(begins)
            with breaks(Rule.TRAPPED_APPLIED, HistoriesDiffer):
                history.prove(LOG, Seqno(first - 1), history.covering(Seqno(first - 1)).epoch)
        history.prove(LOG, Seqno(begins - 1), history.covering(Seqno(begins - 1)).epoch)
    assert moved == {**dict.fromkeys(range(5, 11), 4), 13: 12, 14: 12}


@pytest.mark.parametrize("seqno", [-1, 16])
def test_unfinished_event_belongs_to_no_epoch(seqno: int) -> None:
    with pytest.raises(HistoriesDiffer):
        TOLD.covering(Seqno(seqno))


def test_event_of_another_epoch_is_refused() -> None:
    with pytest.raises(HistoriesDiffer) as error:
        TOLD.prove(LOG, Seqno(10), Epoch(2), source_id="db1:3306")
    assert error.value.message == (
        "Client handshake failure: Client response validation failed: "
        "Log epoch numbers do not match: client source ID=db1:3306 seqno=10 server epoch number=3 client epoch number=2"
    )


def test_another_log_is_refused_whatever_its_numbers() -> None:
    for other in ("b" * 32, ""):
        with pytest.raises(HistoriesDiffer) as refused:
            TOLD.prove(LogId(other), Seqno(10), Epoch(3))
        assert refused.value.where == {"server_log_id": LOG, "client_log_id": other or "none", "seqno": 10}


def test_a_target_ahead_of_the_log_is_refused() -> None:
    with pytest.raises(HistoriesDiffer) as refused:
        TOLD.prove(LOG, Seqno(16), Epoch(4))
    assert refused.value.where == {"log_id": LOG, "seqno": 16, "last_finished": 15}
    assert "fill the target again" in refused.value.hint


def test_an_empty_target_needs_the_logs_first_event() -> None:
    TOLD.prove(LogId(""), NO_SEQNO, NO_EPOCH, from_first=True)
    with pytest.raises(HistoriesDiffer) as refused:
        TOLD.prove(LogId(""), NO_SEQNO, NO_EPOCH, from_first=False)
    assert refused.value.where == {"log_id": LOG}
    assert "another `service`" in refused.value.hint
    for log_id, epoch in ((LogId("b" * 32), NO_EPOCH), (LogId(""), Epoch(1))):
        with pytest.raises(HistoriesDiffer) as refused:
            TOLD.prove(log_id, NO_SEQNO, epoch)
        assert refused.value.where == {"client_log_id": log_id, "log_id": LOG, "epoch": epoch}


@pytest.mark.parametrize(
    ("state", "last", "fields"),
    [
        (ControlState(None, None, ()), -1, {}),
        (replace(control(0), epochs=()), -1, {}),
        (replace(control(0, 3), epochs=control(0, 3).epochs[1:]), 5, {"first": 2}),
        (control(3), 5, {"first": 1}),
        (replace(control(0, 3, 4), epochs=control(0, 3, 4).epochs[::2]), 5, {"epoch": 2}),
        (control(0, 5, 3), 6, {"epoch": 3, "first_seqno": 3, "before": 5}),
        (control(0, 7), 5, {"epoch": 2, "first_seqno": 7, "last_finished": 5}),
    ],
)
def test_a_control_topic_that_contradicts_itself_is_damaged(
    state: ControlState, last: int, fields: dict[str, int]
) -> None:
    with pytest.raises(LogDamaged) as damaged:
        History.of(state, Seqno(last))
    assert damaged.value.where == ({"log_id": LOG} | fields if fields else {})


def at(**offsets: int) -> TargetPosition:
    return TargetPosition(service="shop", seqno=Seqno(4), offsets={int(p[1:]): o for p, o in offsets.items()})


def deleted(*args: Any, **options: Any) -> None:
    """Retention has deleted what the target needs next."""
    with pytest.raises(LogDamaged) as damaged:
        check_offsets(*args, **options)
    assert {"offset", "start"} <= damaged.value.where.keys()
    assert "keep the log for longer" in damaged.value.hint


def test_deleted_or_lost_offset_of_a_target_is_refused() -> None:
    check_offsets(at(p0=10, p1=0), {0: 10, 1: 0}, {0: 10, 1: 5})
    check_offsets(TargetPosition(service="shop"), {0: 0}, {0: 9})
    deleted(at(p0=9), {0: 10}, {0: 20})
    deleted(at(p0=9), {0: 0, 1: 3}, {0: 20, 1: 20})
    # Nothing but markers is deleted where the target has every event of which a message may be gone.
    check_offsets(at(p0=9), {0: 10}, {0: 10}, {0: Seqno(4)})
    check_offsets(at(p0=9), {0: 10}, {0: 20}, {0: Seqno(3)})
    for lacking in ({0: Seqno(5)}, {1: Seqno(4)}):
        deleted(at(p0=9), {0: 10}, {0: 10}, lacking)
    check_offsets(TargetPosition(service="shop", offsets={0: 9}), {0: 10}, {0: 10}, {0: NO_SEQNO})
    deleted(TargetPosition(service="shop", offsets={0: 9}), {0: 10}, {0: 10}, {0: Seqno(0)})
    with pytest.raises(BrokerUnavailable, match="not finished"):
        check_offsets(at(p0=9), {0: 10}, {0: 20}, {0: Seqno(3)}, [0])
    deleted(at(p0=9), {0: 10}, {0: 20}, {0: Seqno(5)}, [0])
    with pytest.raises(LogDamaged) as lost:
        check_offsets(at(p0=21), {0: 10}, {0: 20})
    assert lost.value.where == {"partition": 0, "offset": 21, "end": 20, "seqno": 4}
    with pytest.raises(LogDamaged) as fewer:
        check_offsets(at(p0=1, p1=1), {0: 0}, {0: 20})
    assert fewer.value.where == {"missing": [1]}


def test_an_offset_without_the_events_that_the_target_lacks_is_refused() -> None:
    check_offsets(at(p0=10), {0: 10}, {0: 10}, {0: Seqno(4)})
    with pytest.raises(LogDamaged, match="lost its tail") as lost:
        check_offsets(at(p0=10), {0: 10}, {0: 10}, {0: Seqno(5)})
    assert not isinstance(lost.value, EventsDeleted)  # the handshake reads the log again
    assert (lost.value.where["seqno"], lost.value.where["applied"]) == (5, 4)


def test_a_reader_of_some_shards_needs_what_it_had_not_read_of_a_partition() -> None:
    check_offsets(at(p0=9), {0: 10}, {0: 10}, {0: Seqno(3)}, had={0: Seqno(3)})
    for had in ({0: Seqno(2)}, {}):
        deleted(at(p0=9), {0: 10}, {0: 10}, {0: Seqno(3)}, had=had)


def test_event_before_the_offset_that_the_target_lacks_is_refused() -> None:
    check_before(at(p0=10, p1=7), {0: Seqno(4), 1: NO_SEQNO})
    with pytest.raises(LogDamaged) as damaged:
        check_before(at(p0=10, p1=7), {0: Seqno(4), 1: Seqno(5)})
    assert damaged.value.where == {"partition": 1, "offset": 7, "seqno": 5, "applied": 4}


def test_commit_in_part_of_another_log_is_refused_before_the_targets_first_position() -> None:
    history = History(LOG, control(0).epochs, Seqno(9))
    intent = Intent(
        log_id=LOG,
        first=Seqno(0),
        last=Seqno(4),
        epoch=Epoch(1),
        writers=2,
        hash_version=1,
        undivided=frozenset(),
        committed=frozenset({0}),
    )
    history.prove_target(TargetPosition(service="shop", intent=intent), from_first=True)
    for changed in (replace(intent, log_id=LogId("f" * 32)), replace(intent, epoch=Epoch(2))):
        with pytest.raises(HistoriesDiffer):
            history.prove_target(TargetPosition(service="shop", intent=changed), from_first=True)
