"""Batches pass in order, bounded; a failure overtakes them; a closed queue releases its reader."""

from __future__ import annotations

import threading
import time

import pytest

from connector.spark.stream.batch_queue import BatchQueue, QueueClosed
from connector.spark.stream.parts import Batch
from tests.support.clock import PATIENCE


def table(size: int) -> Batch:
    return Batch([], 0, size)


def in_background(queue: BatchQueue, batch: Batch) -> tuple[threading.Thread, list[BaseException]]:
    failures: list[BaseException] = []

    def put() -> None:
        try:
            queue.put(batch)
        except QueueClosed as closed:
            failures.append(closed)

    thread = threading.Thread(target=put, daemon=True)
    thread.start()
    return thread, failures


def test_batches_are_returned_in_order() -> None:
    queue = BatchQueue(3, 1 << 20)
    for size in (1, 2, 3):
        queue.put(table(size))
    assert [queue.get(0).size for _ in range(3)] == [1, 2, 3]  # type: ignore[union-attr]


def test_an_empty_queue_gives_none_after_the_timeout() -> None:
    started = time.monotonic()
    assert BatchQueue(1, 1).get(0.05) is None
    assert time.monotonic() - started >= 0.05


@pytest.mark.parametrize(("batches", "size"), [(1, 1 << 20), (9, 1500)])
def test_a_reader_waits_while_there_are_too_many_batches_or_bytes(batches: int, size: int) -> None:
    queue = BatchQueue(batches, size)
    queue.put(table(1000))
    thread, _ = in_background(queue, table(1000))
    thread.join(0.1)
    assert thread.is_alive()
    assert queue.get(1) is not None
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert queue.get(1) is not None


def test_a_batch_larger_than_the_bound_passes_alone() -> None:
    queue = BatchQueue(2, 10)
    queue.put(table(1000))
    assert queue.get(0) is not None


def test_bytes_of_a_batch_that_was_taken_are_free_again() -> None:
    queue = BatchQueue(9, 1500)
    for _ in range(3):
        queue.put(table(1000))
        assert queue.get(0) is not None
    queue.put(table(1000))
    thread, _ = in_background(queue, table(400))
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_closing_drops_the_batches_that_wait() -> None:
    queue = BatchQueue(2, 1 << 20)
    queue.put(table(1))
    queue.close()
    assert queue.get(0) is None


def test_a_failure_overtakes_the_batches_that_wait() -> None:
    queue = BatchQueue(2, 1 << 20)
    queue.put(table(1))
    first = ValueError()
    queue.fail(first)
    queue.fail(ValueError())
    with pytest.raises(ValueError) as raised:
        queue.get(1)
    assert raised.value is first


def test_a_waiting_reader_is_released_when_the_applier_closes() -> None:
    queue = BatchQueue(1, 1 << 20)
    queue.put(table(1))
    thread, failures = in_background(queue, table(1))
    queue.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert isinstance(failures[0], QueueClosed)
