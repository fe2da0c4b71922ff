"""Where in its partition an event stands, asked of Kafka in few reads."""

from __future__ import annotations

from connector.publish.header import Place, place_of
from connector.publish.reading import LogReader
from connector.thl.seek import Met, first_of


def offset_of(log: LogReader, partition: int, seqno: int, bounds: tuple[int, int] | None = None) -> int:
    """Where to begin to read a partition of the event topic for an event and those behind it.

    What comes first may also be the marker of the event's epoch, or fragments of the same number that were given up.

    Args:
        log: best a `sparing` one: it reads about as many single messages as the number of offsets has bits.
        partition: which.
        seqno: of the event. It may be of another partition: then it is what comes after it in this one.
        bounds: the first offset, and the one after the last; asked for when not given.

    Returns:
        The offset of the first message that is not of an earlier event; the end when there is none.

    Raises:
        BrokerUnavailable: the brokers do not answer.
        PreflightError: they refuse us.
        LogDamaged: a message is not a fragment.
    """
    start, end = bounds or log.bounds(partition)

    def read(offset: int) -> Met[Place] | None:
        found = log.first(partition, offset, end)
        return found and Met(found[0], place_of(found[1]))

    met = first_of(read, start, end, seqno)
    return met.offset if met else end
