"""Items of several threads reach one, bounded, with the first failure and without a thread that waits for ever."""

from __future__ import annotations

import threading

import pytest

from connector.mysql.snapshot.handover import Closed, Handover
from tests.support.clock import PATIENCE


def in_threads(*calls: object) -> list[threading.Thread]:
    threads = [threading.Thread(target=call, daemon=True) for call in calls]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    return threads


def test_items_of_all_producers_arrive_each_in_its_order() -> None:
    handover = Handover[tuple[int, int]](10, 3)

    def hand(producer: int) -> None:
        for number in range(200):
            handover.put((producer, number), 3)
        handover.end()

    threads = in_threads(*(lambda n=n: hand(n) for n in range(3)))
    found = list(handover)
    for thread in threads:
        thread.join(PATIENCE)
    for producer in range(3):
        assert [number for who, number in found if who == producer] == list(range(200))


def test_waiting_items_are_bounded_and_a_larger_one_waits_alone() -> None:
    handover = Handover[int](10, 1)
    most = []

    def hand() -> None:
        for size in (4, 4, 4, 50, 4):
            handover.put(size, size)
            most.append(handover._bytes)
        handover.end()

    (thread,) = in_threads(hand)
    assert list(handover) == [4, 4, 4, 50, 4]
    thread.join(PATIENCE)
    assert all(waiting <= 10 or waiting == 50 for waiting in most)


def test_failure_of_one_producer_comes_before_what_waits() -> None:
    handover = Handover[int](10, 2)
    handover.put(1)
    handover.fail(KeyError("first"))
    handover.fail(KeyError("second"))
    with pytest.raises(KeyError, match="first"):
        next(iter(handover))


def test_closing_lets_a_waiting_producer_go() -> None:
    handover = Handover[int](1, 1)
    handover.put(1, 1)
    refused = threading.Event()

    def hand() -> None:
        try:
            handover.put(2, 1)
        except Closed:
            refused.set()

    (thread,) = in_threads(hand)
    handover.close()
    thread.join(PATIENCE)
    assert refused.is_set()
