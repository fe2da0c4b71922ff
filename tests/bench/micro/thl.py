"""Benchmarks of the protocol's rules, once per event."""

from __future__ import annotations

from connector.log.gtid.mysql import GtidSet
from connector.log.ids import Seqno
from connector.log.reading.event_sequencer import EventSequencer
from connector.log.transaction.position import TargetPosition
from connector.log.writing.progress import Progress
from tests.bench.micro import inputs
from tests.bench.micro.inputs import UUID, nowhere
from tests.bench.micro.registry import Work, micro
from tests.support.log_objects import header

EVENTS = 500
SPANS = 1000


@micro("fragment", inputs.SMALL)
def progress_take() -> Work:
    fragments = inputs.fragments(inputs.small_log())

    def work() -> Seqno:
        progress = Progress(nowhere())
        for fragment in fragments:
            progress.accept(fragment)
        return progress.next_seqno

    return work


@micro("record")
def progress_record() -> Work:
    """The record at a Kafka transaction's end, with a GTID set of three servers."""
    progress = Progress(nowhere())
    progress.snapshot_ended(",".join(f"{UUID[:-1]}{digit}:1-1000000" for digit in "123"))
    return progress.record


@micro("gtid", EVENTS)
def gtid_add() -> Work:
    """Adds the next number of the same server, the usual case."""
    gtids = [f"{UUID}:{number}" for number in range(1, EVENTS + 1)]

    def work() -> int:
        found = GtidSet()
        for gtid in gtids:
            found.add(gtid)
        return found.count()

    return work


@micro("span", SPANS)
def gtid_str() -> Work:
    """Prints a set with many gaps."""
    found = GtidSet.parse(f"{UUID}:" + ":".join(f"{10 * n + 1}-{10 * n + 5}" for n in range(SPANS)))
    return lambda: str(found)


@micro("event", EVENTS)
def ledger_one_partition() -> Work:
    return _ledger(1)


@micro("event", EVENTS)
def ledger_eight_partitions() -> Work:
    return _ledger(8)


def _ledger(partitions: int) -> Work:
    """Events of one fragment, round the partitions, released eight at a time."""
    headers = [header(n, prev=n - partitions if n >= partitions else -1) for n in range(EVENTS)]

    def work() -> int:
        sequencer = EventSequencer[int, int](topic="t", partitions=partitions, position=TargetPosition(service="micro"))
        released = 0
        for number, each in enumerate(headers):
            sequencer.accept(each, number % partitions, number // partitions, number)
            if number % 8 == 7:
                released += len(sequencer.release())
        return released

    return work
