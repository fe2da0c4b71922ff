"""Going online, one decision at a time: promise 1 on the log's side, promise 6 on the source's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.errors import HistoriesDiffer, LogDamaged
from connector.log.epochs.control import ControlState
from connector.log.ids import NO_SEQNO, Epoch, Kind, LogId, Seqno
from connector.log.transaction.position import Digest, Open, PositionRecord, SourcePosition
from connector.log.writing.online import OnlinePlan, SourceFound, TailFound, check_redo, decide, go_back, incomparable
from tests.support.log_objects import LOG, UUID, control, finished, header, marker, position

NOTHING = ControlState(None, None, ())
EMPTY = TailFound()
SOURCE = SourceFound(
    source_id="db1:3306",
    server_uuid=UUID,
    now=7,
    log_id=LogId("b" * 32),
    start=SourcePosition("mysql-bin.000001", 4),
    gtid_set="",
    executed=f"{UUID}:1-1000",
)


def test_a_new_log_gets_its_identity_its_partitions_and_its_first_epoch() -> None:
    plan = decide(NOTHING, None, {0: EMPTY, 1: EMPTY}, replace(SOURCE, snapshot=True, gtid_set=f"{UUID}:1-3"))
    assert plan.new
    assert plan.log is not None
    assert (plan.log.log_id, plan.log.created) == ("b" * 32, 7)
    assert plan.partitions is not None
    assert plan.partitions.count == 2
    assert (plan.epoch.epoch, plan.epoch.first_seqno, plan.epoch.reason) == (1, 0, "online")
    assert plan.position.finished is None
    assert plan.position.tails == {0: NO_SEQNO, 1: NO_SEQNO}
    assert plan.position.snapshot
    assert plan.position.gtid_set == f"{UUID}:1-3"
    assert plan.redo is None
    assert plan.control == ControlState(plan.log, plan.partitions, (plan.epoch,))


def went_on() -> OnlinePlan:
    """After event 8, with 9 unfinished."""
    at = replace(position(8, 2, tails={0: 8, 1: 6}), open=Open(Seqno(9), 3, 1), last_barrier=Seqno(8))
    tails = {0: TailFound(Seqno(8), Epoch(2), 0, 30), 1: TailFound(Seqno(6), Epoch(2), 0, 40)}
    return decide(control(0, 5, count=2), at, tails, SOURCE)


def test_a_log_goes_on_in_a_new_epoch_after_its_last_event() -> None:
    plan = went_on()
    assert not plan.new
    assert (plan.epoch.epoch, plan.epoch.first_seqno) == (3, 9)
    assert plan.position == replace(position(8, 2, tails={0: 8, 1: 6}), last_barrier=Seqno(8))
    assert plan.control.epochs[-1] == plan.epoch
    assert plan.redo == finished(8, 2)


def test_last_event_made_by_other_filters_is_not_compared() -> None:
    tails = {0: TailFound(Seqno(8), Epoch(2), 0, 30)}
    before = control(0, 5)
    epochs = tuple(replace(epoch, filters="a") for epoch in before.epochs)

    def plan(of: ControlState, filters: str | None) -> OnlinePlan:
        return decide(of, position(8, 2), tails, replace(SOURCE, filters=filters))

    same, other = (plan(replace(before, epochs=epochs), filters) for filters in ("a", "b"))
    assert same.epoch.filters == "a"
    assert (same.redo, incomparable(same.control, same.position)) == (finished(8, 2), "")
    assert other.redo is None
    assert "filters have changed" in incomparable(other.control, other.position)
    # It counts under which the event was published, not who was online last.
    tails = {0: TailFound(Seqno(8), Epoch(3), 0, 32)}
    assert plan(other.control, "a").redo == finished(8, 2)
    assert plan(other.control, "b").redo is None
    # A log from before the records told it.
    tails = {0: TailFound(Seqno(8), Epoch(2), 0, 30)}
    assert plan(before, "b").redo == finished(8, 2)
    assert plan(replace(before, epochs=epochs), None).redo == finished(8, 2)


def test_every_partition_gets_a_marker_that_names_its_last_event() -> None:
    plan = went_on()
    assert sorted(plan.markers) == [0, 1]
    for partition, tail in ((0, 8), (1, 6)):
        it = plan.markers[partition]
        assert (it.kind, it.epoch, it.seqno, it.prev_seqno, it.last_barrier) == (Kind.EPOCH, 3, 9, tail, 8)
        assert it.metadata == {"log_id": LOG, "last_finished": "8", "gtid_set": f"{UUID}:1-9"}
        assert (it.fragno, it.last_frag) == (0, True)


def test_going_back_begins_an_epoch_with_its_own_reason() -> None:
    at = replace(position(8), open=Open(Seqno(9), 3, 0))
    plan = go_back(control(0), at, SOURCE)
    assert (plan.epoch.epoch, plan.epoch.first_seqno, plan.epoch.reason) == (2, 9, "went back")
    assert plan.position.open is None


def test_newest_message_of_a_partition_gives_its_last_event() -> None:
    assert TailFound.of(header(7), start=0, end=9) == TailFound(Seqno(7), Epoch(1), 0, 9)
    assert TailFound.of(header(7, 2, last=False, prev=4), start=0, end=9) == TailFound(Seqno(4), Epoch(1), 0, 9)
    assert TailFound.of(marker(3, 7, prev=5), start=0, end=9) == TailFound(Seqno(5), Epoch(3), 0, 9)
    assert TailFound.of(None, start=4, end=4) == TailFound(NO_SEQNO, Epoch(0), 4, 4)


GONE = TailFound(start=40, end=40)
FINE = TailFound(Seqno(8), Epoch(2), 0, 30)


def test_partition_emptied_by_retention_is_accepted() -> None:
    plan = decide(control(0, 5), position(8, 2), {0: GONE}, SOURCE)
    assert plan.markers[0].prev_seqno == 8


def test_log_without_events_after_an_aborted_start_is_new() -> None:
    assert decide(NOTHING, None, {0: TailFound(start=0, end=2)}, SOURCE).new
    assert decide(NOTHING, None, {0: TailFound(start=2, end=2)}, SOURCE).new


@pytest.mark.parametrize(
    ("state", "at", "found", "named", "fields"),
    [
        (control(0, 5), None, {0: FINE}, "position topic", {"log_id": LOG}),
        (NOTHING, position(8, 2), {0: FINE}, "control topic", {}),
        (NOTHING, None, {0: FINE}, "control and position topics", {"partition": 0, "seqno": 8, "epoch": 2}),
        (control(0, 5), position(8, 2), {0: FINE, 1: FINE}, "event topic", {"expected": 1, "found": 2}),
        (control(0, 5, count=2), position(8, 2), {0: FINE}, "event topic", {"expected": 2, "found": 1}),
        (control(0, 5), position(8, 2), {1: FINE}, "event topic", {"partitions": [1]}),
        (control(0, 5), position(8, 2), {}, "event topic", {"partitions": []}),
        (
            control(0, 5),
            position(8, 2),
            {0: replace(FINE, seqno=Seqno(7))},
            "partition",
            {"partition_seqno": 7, "position_seqno": 8},
        ),
        (
            control(0, 5),
            position(8, 2),
            {0: replace(FINE, epoch=Epoch(1))},
            "partition",
            {"partition_epoch": 1, "control_epoch": 2},
        ),
        (control(0, 5), position(7, 2), {0: FINE}, "position topic", {"partition_seqno": 8, "position_seqno": 7}),
        (control(0, 9), position(7, 1), {0: FINE}, "position topic", {"first_seqno": 9, "last_finished": 7}),
        (control(0), position(8, 2), {0: FINE}, "control topic", {"seqno": 8, "epoch": 2, "newest_epoch": 1}),
        (control(0), position(8, 1), {0: FINE}, "control topic", {"partition_epoch": 2, "control_epoch": 1}),
        (control(0, 5), position(8, 2), {0: EMPTY}, "partition", {"seqno": 8, "end": 0}),
        (control(0, 5), position(8, 2), {0: TailFound(start=0, end=3)}, "partition", {"seqno": 8, "end": 3}),
    ],
)
def test_contradictory_topics_stop_the_producer(
    state: ControlState, at: PositionRecord | None, found: dict[int, TailFound], named: str, fields: dict[str, object]
) -> None:
    with pytest.raises(LogDamaged) as damaged:
        decide(state, at, found, SOURCE)
    assert f" {named}" in damaged.value.message
    assert fields.items() <= damaged.value.where.items()


def test_added_partitions_are_refused_with_the_remedy() -> None:
    with pytest.raises(LogDamaged) as error:
        decide(control(0, 5), position(8, 2), {0: FINE, 1: FINE}, SOURCE)
    assert "kafka-topics --alter" in error.value.hint
    assert "under another service, and apply it to an empty target" in error.value.hint


def going_on(**source: object) -> OnlinePlan:
    at = replace(position(8, 2), server_uuid=UUID)
    return decide(control(0, 5), at, {0: FINE}, replace(SOURCE, **source))


def test_transactions_that_the_source_lacks_are_listed() -> None:
    with pytest.raises(HistoriesDiffer) as error:
        going_on(executed=f"{UUID}:1-4:6:8-20")
    assert error.value.where["trapped"] == f"{UUID}:5:7"


def test_a_source_without_gtids_cannot_continue_a_log_that_has_them() -> None:
    with pytest.raises(HistoriesDiffer) as error:
        going_on(executed=None)
    assert "gtid_mode" in error.value.hint


def test_without_gtids_only_the_same_server_can_go_on() -> None:
    at = replace(position(8, 2), gtid_set=None)
    source = replace(SOURCE, gtid_set=None, executed=None)
    assert decide(control(0, 5), at, {0: FINE}, source).epoch.epoch == 3
    with pytest.raises(HistoriesDiffer) as error:
        decide(control(0, 5), at, {0: FINE}, replace(source, server_uuid="other"))
    assert error.value.where["server_uuid"] == "other"


@pytest.mark.parametrize(
    "files",
    [
        None,
        {"mysql-bin.000001": 900},
        {"mysql-bin.000001": 5000, "mysql-bin.000002": 4},
        {"mysql-bin.000007": 4},  # 000001 is purged
    ],
)
def test_source_whose_files_reach_the_position_is_accepted(files: dict[str, int] | None) -> None:
    assert going_on(files=files).epoch.epoch == 3


@pytest.mark.parametrize("files", [{"mysql-bin.000001": 899, "mysql-bin.000002": 700}, {"mysql-bin.000000": 99999}, {}])
def test_a_source_that_lost_the_end_of_its_log_is_refused(files: dict[str, int]) -> None:
    with pytest.raises(HistoriesDiffer) as error:
        going_on(files=files)
    assert error.value.where["size"] == files.get(str(error.value.where["file"]), "no such file")
    assert going_on(files=files, server_uuid="another server's files").epoch.epoch == 3


def test_last_transaction_that_differs_on_the_source_is_refused() -> None:
    last = finished(8, 2)
    check_redo(last, last, same_server=True)
    check_redo(last, last.digest)
    moved = replace(last, start=SourcePosition("binlog.000044", 4), event_id="binlog.000044:0000000000000104;7")
    check_redo(last, moved, same_server=False)
    for redone in (None, Digest(1, 10, 1), replace(last, digest=Digest(2, 10, 0)), replace(last, gtid=f"{UUID}:10")):
        with pytest.raises(HistoriesDiffer) as error:
            check_redo(last, redone)
        assert error.value.where["found"] == (redone or "nothing")
    with pytest.raises(HistoriesDiffer) as error:
        check_redo(last, moved, same_server=True)
    assert error.value.where["found"] == moved
    with pytest.raises(HistoriesDiffer) as error:
        check_redo(replace(last, gtid=None), replace(moved, gtid=None))
    assert error.value.where["found"] == replace(moved, gtid=None)
