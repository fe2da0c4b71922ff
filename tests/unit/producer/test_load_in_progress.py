"""An initial load goes on after the last event in Kafka, with the same batches, and begins again only where it must."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from connector.log.ids import Seqno
from connector.log.transaction.position import SourcePosition
from connector.producer.load_in_progress import LoadInProgress


class Numbers:
    """A load whose batches are numbers; it reads each once."""

    tables = None
    position = (SourcePosition("mysql-bin.000001", 4), None)

    def __init__(self, count: int) -> None:
        self.count, self.read = count, 0
        self.closed = False

    def batches(self) -> Iterator[Any]:
        while self.read < self.count:
            self.read += 1
            yield self.read

    def close(self) -> None:
        self.closed = True


def a_load(count: int) -> tuple[Numbers, LoadInProgress]:
    source: Any = Numbers(count)
    return source, LoadInProgress(source, "one")


@given(st.integers(0, 20), st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=8))
def test_each_batch_is_an_event_once_however_often_the_brokers_are_lost(
    count: int, losses: list[tuple[int, int]]
) -> None:
    """A loss: after so many events, of which so many of the newest are not in Kafka."""
    source, load = a_load(count)
    log: list[Any] = ["before"]  # the events that were encoded; those that Kafka lacks are cut off at a loss
    committed = 0
    for sent, lost in losses:
        for number, batch in enumerate(load):
            if number == sent:
                break  # the batch was taken, and `sent` does not follow
            log.append(batch)
            load.sent(Seqno(len(log) - 1), Seqno(committed))
        committed = max(committed, len(log) - 1 - lost)
        del log[committed + 1 :]
        assert load.go_back(Seqno(committed), "one")
    for batch in load:
        log.append(batch)
        load.sent(Seqno(len(log) - 1), Seqno(len(log) - 1))
    assert log == ["before", *range(1, count + 1)]
    assert source.read == count


def test_batches_that_are_in_kafka_are_not_kept() -> None:
    _, load = a_load(10)
    for number, _ in enumerate(load):
        load.sent(Seqno(number), Seqno(number - 2))
        assert len(load._sent) <= 2


def test_a_log_that_ends_elsewhere_needs_a_new_load() -> None:
    _, load = a_load(10)
    for number, _ in enumerate(load):
        load.sent(Seqno(number), Seqno(-1))
    assert not load.go_back(Seqno(-2), "one")
    assert load.go_back(Seqno(4), "one")


def test_a_load_of_another_server_begins_again() -> None:
    _, load = a_load(10)
    assert not load.go_back(Seqno(-1), "other")
    assert load.go_back(Seqno(-1), "one")
