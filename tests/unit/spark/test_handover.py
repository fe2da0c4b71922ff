"""Batches pass in order, bounded; a failure overtakes them; a closed queue releases its reader."""

from __future__ import annotations

import threading
import time

import pytest

from connector.spark.stream.handover import Closed, Handover
from connector.spark.stream.parts import Batch
from tests.support.clock import PATIENCE


def table(size: int) -> Batch:
    return Batch([], 0, size)


def in_background(handover: Handover, batch: Batch) -> tuple[threading.Thread, list[BaseException]]:
    failures: list[BaseException] = []

    def put() -> None:
        try:
            handover.put(batch)
        except Closed as closed:
            failures.append(closed)

    thread = threading.Thread(target=put, daemon=True)
    thread.start()
    return thread, failures


def test_batches_are_returned_in_order() -> None:
    handover = Handover(3, 1 << 20)
    for size in (1, 2, 3):
        handover.put(table(size))
    assert [handover.get(0).size for _ in range(3)] == [1, 2, 3]  # type: ignore[union-attr]


def test_an_empty_queue_gives_none_after_the_timeout() -> None:
    started = time.monotonic()
    assert Handover(1, 1).get(0.05) is None
    assert time.monotonic() - started >= 0.05


@pytest.mark.parametrize(("batches", "size"), [(1, 1 << 20), (9, 1500)])
def test_a_reader_waits_while_there_are_too_many_batches_or_bytes(batches: int, size: int) -> None:
    handover = Handover(batches, size)
    handover.put(table(1000))
    thread, _ = in_background(handover, table(1000))
    thread.join(0.1)
    assert thread.is_alive()
    assert handover.get(1) is not None
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert handover.get(1) is not None


def test_a_batch_larger_than_the_bound_passes_alone() -> None:
    handover = Handover(2, 10)
    handover.put(table(1000))
    assert handover.get(0) is not None


def test_bytes_of_a_batch_that_was_taken_are_free_again() -> None:
    handover = Handover(9, 1500)
    for _ in range(3):
        handover.put(table(1000))
        assert handover.get(0) is not None
    handover.put(table(1000))
    thread, _ = in_background(handover, table(400))
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_closing_drops_the_batches_that_wait() -> None:
    handover = Handover(2, 1 << 20)
    handover.put(table(1))
    handover.close()
    assert handover.get(0) is None


def test_a_failure_overtakes_the_batches_that_wait() -> None:
    handover = Handover(2, 1 << 20)
    handover.put(table(1))
    first = ValueError()
    handover.fail(first)
    handover.fail(ValueError())
    with pytest.raises(ValueError) as raised:
        handover.get(1)
    assert raised.value is first


def test_a_waiting_reader_is_released_when_the_applier_closes() -> None:
    handover = Handover(1, 1 << 20)
    handover.put(table(1))
    thread, failures = in_background(handover, table(1))
    handover.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert isinstance(failures[0], Closed)
