"""The producer's position moves only to where it is safe to resume."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.errors import LogDamaged
from connector.log.ids import Seqno
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.position import Open, PositionRecord, SourcePosition
from connector.log.writing.fragment import Fragment
from connector.log.writing.progress import Progress
from tests.support.log_objects import UUID, finished, position

NEXT = SourcePosition("mysql-bin.000001", 600)


def advance(record: PositionRecord, *steps: Fragment | PositionAdvance) -> PositionRecord:
    """The position after these steps."""
    progress = Progress(record, record.server_uuid)
    for step in steps:
        if isinstance(step, PositionAdvance):
            progress.passed(step)
        else:
            progress.accept(step)
    return progress.record()


def fragment(seqno: int, fragno: int = 0, *, last: bool = True, partition: int = 0, barrier: bool = False) -> Fragment:
    return Fragment(
        partition=partition,
        key=b"shop",
        value=b"",
        seqno=Seqno(seqno),
        fragno=fragno,
        finished=finished(seqno) if last else None,
        resume=SourcePosition("mysql-bin.000001", 100 * (seqno + 1)) if last else None,
        barrier=barrier,
        commit_time=None,
    )


BEGUN = position(4, tails={0: 4, 1: 2})


def test_an_unfinished_event_sets_open_and_moves_nothing_else() -> None:
    first = advance(BEGUN, fragment(5, last=False, partition=1))
    assert first == replace(BEGUN, open=Open(Seqno(5), 0, 1))
    assert advance(first, fragment(5, 1, last=False, partition=1)) == replace(BEGUN, open=Open(Seqno(5), 1, 1))


def test_a_finished_event_moves_everything() -> None:
    done = advance(BEGUN, fragment(5, last=False, partition=1), fragment(5, 1, partition=1, barrier=True))
    assert done.finished == finished(5)
    assert done.open is None
    assert done.resume == NEXT
    assert done.gtid_set == f"{UUID}:1-6"
    assert done.tails == {0: 4, 1: 5}
    assert done.last_barrier == 5
    assert advance(done, fragment(6)).last_barrier == 5


def test_position_advance_moves_only_the_position_of_the_source() -> None:
    moved = advance(BEGUN, PositionAdvance(NEXT, f"{UUID}:6"))
    assert moved == replace(BEGUN, resume=NEXT, gtid_set=f"{UUID}:1-6")
    assert advance(BEGUN, PositionAdvance(NEXT, None)) == replace(BEGUN, resume=NEXT)


def test_position_advance_within_an_event_moves_nothing() -> None:
    progress = Progress(BEGUN)
    progress.accept(fragment(5, last=False))
    before = progress.record()
    assert not progress.passed(PositionAdvance(NEXT, f"{UUID}:7"))
    assert progress.record() == before
    progress.accept(fragment(5, 1))
    assert progress.passed(PositionAdvance(SourcePosition("mysql-bin.000001", 700), f"{UUID}:7"))
    assert progress.record().gtid_set == f"{UUID}:1-7"


@pytest.mark.parametrize(
    "steps",
    [
        [fragment(6)],
        [fragment(4)],
        [fragment(5, 1)],
        [fragment(5, last=False), fragment(5, last=False)],
        [fragment(5, last=False), fragment(5, 2)],
        [fragment(5, last=False), fragment(6)],
        [fragment(5, last=False), fragment(5, 1, partition=1)],
        [fragment(5), fragment(5)],
        [replace(fragment(5), finished=finished(6))],
        [replace(fragment(5), resume=None)],
    ],
)
def test_fragment_that_would_damage_the_log_is_refused_and_nothing_moves(steps: list[Fragment]) -> None:
    progress = Progress(BEGUN)
    for step in steps[:-1]:
        progress.accept(step)
    before = progress.record()
    with pytest.raises(LogDamaged):
        progress.accept(steps[-1])
    assert progress.record() == before


def test_first_event_of_a_log_is_0() -> None:
    progress = Progress(position())
    assert progress.next_seqno == 0
    progress.accept(fragment(0))
    assert progress.next_seqno == 1


def test_an_initial_load_is_remembered_until_its_end_and_counts_as_seen() -> None:
    progress = Progress(replace(position(), snapshot=True))
    progress.accept(replace(fragment(0), finished=replace(finished(0), gtid=None)))
    assert progress.record().snapshot
    progress.snapshot_ended(f"{UUID}:1-50")
    assert (progress.record().snapshot, progress.record().gtid_set) == (False, f"{UUID}:1-50")


def test_position_of_a_source_without_gtids_gets_none() -> None:
    moved = advance(replace(BEGUN, gtid_set=None), fragment(5), PositionAdvance(NEXT, f"{UUID}:9"))
    assert moved.gtid_set is None


def test_the_position_names_the_server_that_it_was_read_from() -> None:
    progress = Progress(replace(BEGUN, server_uuid="old"), "new")
    assert progress.record().server_uuid == "old"
    progress.accept(fragment(5, last=False))
    assert progress.record().server_uuid == "old"
    progress.accept(fragment(5, 1))
    assert progress.record().server_uuid == "new"
    assert advance(replace(BEGUN, server_uuid="old"), fragment(5)).server_uuid == "old"
