"""The work queue is bounded and in order; a failure of one side ends the other; commits grow with the queue."""

from __future__ import annotations

from threading import Thread

import pytest

from connector.errors import BrokerUnavailable
from connector.log.ids import Seqno
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.position import SourcePosition
from connector.log.writing.fragment import Fragment
from connector.producer.publish.pacing import LONGEST_REST, Pacing
from connector.producer.publish.queue import Work, WorkQueue
from tests.support.clock import PATIENCE


def fragment(seqno: int, size: int = 10) -> Fragment:
    return Fragment(
        partition=0,
        key=b"",
        value=b"x" * size,
        seqno=Seqno(seqno),
        fragno=0,
        finished=None,
        resume=None,
        barrier=False,
        commit_time=None,
    )


def test_a_full_queue_blocks_the_reader() -> None:
    queue = WorkQueue(25)
    taken: list[tuple[Work, int] | None] = []
    queue.put([fragment(0)])
    queue.put([fragment(1)])
    putting = Thread(target=lambda: queue.put([fragment(2)]))
    putting.start()
    putting.join(0.05)
    assert putting.is_alive()
    taken.append(queue.poll(1))
    putting.join(PATIENCE)
    assert not putting.is_alive()
    queue.end()
    while not queue.finished:
        taken.append(queue.poll(1))
    assert [
        (item[0].seqno, size) for work in taken if work for item, size in [work] if isinstance(item[0], Fragment)
    ] == [(0, 10), (1, 10), (2, 10)]


def test_work_larger_than_the_queue_waits_alone() -> None:
    queue = WorkQueue(5)
    queue.put([fragment(0, 100)])
    assert queue.poll(0) is not None


def test_work_without_bytes_keeps_its_order() -> None:
    queue = WorkQueue(5)
    queue.put([PositionAdvance(SourcePosition("f", 4), None)])
    assert queue.poll(0) == ([PositionAdvance(SourcePosition("f", 4), None)], 0)
    assert queue.poll(0) is None


def test_a_failed_publisher_releases_the_reader_with_its_error() -> None:
    queue = WorkQueue(5)
    queue.put([fragment(0)])
    told: list[BaseException] = []

    def put() -> None:
        try:
            queue.put([fragment(1)])
        except BrokerUnavailable as error:
            told.append(error)

    putting = Thread(target=put)
    putting.start()
    queue.fail(BrokerUnavailable("gone"))
    putting.join(PATIENCE)
    assert len(told) == 1
    with pytest.raises(BrokerUnavailable):
        queue.check()


def test_a_single_event_is_committed_at_once() -> None:
    assert Pacing(1000, 10).due(1, 0.0, waiting=False)


def test_a_transaction_grows_to_its_limits_while_work_waits() -> None:
    pacing = Pacing(1000, 10)
    assert not pacing.due(999, 0.009, waiting=True)
    assert pacing.due(1000, 0.0, waiting=True)
    assert pacing.due(1, 0.01, waiting=True)


def test_slow_commits_get_more_data_each() -> None:
    pacing = Pacing(1000, 10)
    for _ in range(50):
        pacing.committed(0.1)
    assert not pacing.due(1, 0.3, waiting=True)
    assert pacing.due(1, 0.41, waiting=True)
    assert pacing.due(1000, 0.0, waiting=True)


def test_the_pause_between_two_transactions_is_as_long_as_a_commit() -> None:
    pacing = Pacing(1000, 10)
    assert pacing.rest(0.0) == 0.0, "nothing is known yet"
    for _ in range(50):
        pacing.committed(0.004)
    assert pacing.rest(0.0) == pytest.approx(0.004, rel=0.01)
    assert pacing.rest(0.003) == pytest.approx(0.001, rel=0.05)
    assert pacing.rest(0.005) == 0.0
    for _ in range(50):
        pacing.committed(1.0)
    assert pacing.rest(0.0) == LONGEST_REST
