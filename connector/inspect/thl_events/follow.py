"""Follows the log for `thl tail`: whole events by seqno, from the reader under `connector.consume`."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from typing import Final

from connector.clock import SystemClock
from connector.config.model import Config
from connector.consume.decoding import MessageDecoder
from connector.consume.event import Event
from connector.consume.feed import Feed
from connector.consume.fragments import Fragments
from connector.consume.opening import Beginning
from connector.consume.ordered_reader import OrderedReader
from connector.consume.position import ConsumerPosition
from connector.inspect.thl_events.completeness import floor_of
from connector.inspect.thl_events.log import Listed, listed
from connector.inspect.thl_events.partitions import Partitions
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import Tails, read_tails
from connector.log.epochs.fork import Range, overlaps
from connector.log.epochs.history import History
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_EPOCH, NO_SEQNO, LogId, Seqno

POLL_SECONDS: Final = 0.2  # seconds to wait for messages between two calls of `stopped`
EVENT_BYTES: Final = 8 << 20  # bytes of an event in memory
AHEAD_BYTES: Final = 8 << 20  # bytes of a partition that waits for another one


class Following:
    """Reads the log until it is stopped. Joins no consumer group and commits no offsets.

    Args:
        config: the service and its brokers.
        stopped: returns True to end; called several times a second.
    """

    def __init__(self, config: Config, stopped: Callable[[], bool]) -> None:
        self._config = config
        self._stopped = stopped

    def events(self, last: int, *, voided: bool = False, until: int | None = None) -> Iterator[Listed | None]:
        """Yield the last events of the log and all later ones, fragment by fragment.

        Args:
            last: number of events of the log to begin with.
            voided: include attempts that were given up, and trapped events.
            until: end after this seqno.

        Yields:
            None at the current end of the log.

        Raises:
            BrokerUnavailable: Kafka does not answer at first; later it is waited for.
            ConfigError: there is no such log.
            LogDamaged: a message is not a fragment, or an event is missing.
            HistoriesDiffer: an epoch goes on without events that were returned.
        """
        beginning = self._beginning(last)
        first = Seqno(beginning.position.seqno + 1)
        if until is not None and first > until:
            return
        given_up = _GivenUp(first, beginning.history.trapped if beginning.history else ())
        with closing(Feed(self._config, None)) as feed:
            reader = OrderedReader(
                self._config,
                feed,
                beginning,
                MessageDecoder(self._config.topic),
                clock=SystemClock(),
                event_bytes=EVENT_BYTES,
                ahead_bytes=AHEAD_BYTES,
                attempts=given_up.accept if voided else None,
            )
            with closing(reader):
                while not self._stopped():
                    reader.read(POLL_SECONDS)
                    found = False
                    for one in self._read(reader, given_up, until):
                        found = True
                        yield one
                    if reader.failure is not None:
                        raise reader.failure
                    if until is not None and reader.released >= until:
                        return
                    if not found:
                        yield None

    def _read(self, reader: OrderedReader, given_up: _GivenUp, until: int | None) -> Iterator[Listed]:
        """The fragments of the events that were read, and of those given up before them."""
        while (event := reader.next()) is not None:
            yield from self._voided(given_up, event.seqno)
            if until is not None and event.seqno > until:
                return
            yield from self._listed(event)
        yield from self._voided(given_up, reader.released + 1)

    def _listed(self, event: Event) -> Iterator[Listed]:
        return listed(self._config.topic, event.partition, event.messages, voided=False)

    def _voided(self, given_up: _GivenUp, upto: int) -> Iterator[Listed]:
        for fragments in given_up.drain(upto):
            yield from listed(self._config.topic, fragments.partition, fragments.messages(), voided=True)

    def _beginning(self, last: int) -> Beginning:
        """The position before the last events; not before what retention has deleted in some partition."""
        bounds = Partitions(self._config).bounds()
        tails = read_tails(self._config)
        if tails.lost is not None:
            raise tails.lost
        newest = max((tail.seqno for tail in tails.found.values()), default=NO_SEQNO)
        oldest = floor_of(self._config, tails, bounds) + 1
        first = max(newest + 1 - last, oldest, 0)
        with LogReader(self._config, point_lookup=True) as log:
            history = _history(self._config, log, tails)
            offsets = {partition: log.offset_of(partition, first, span) for partition, span in bounds.items()}
        before = Seqno(first - 1)
        known = history is not None and 0 <= before <= history.last_finished
        position = ConsumerPosition(
            service=self._config.service,
            log_id=history.log_id if history is not None else LogId(""),
            seqno=before,
            epoch=history.covering(before).epoch if history is not None and known else NO_EPOCH,
            offsets=offsets,
        )
        return Beginning(history, len(bounds), position, offsets)


def _history(config: Config, log: LogReader, tails: Tails) -> History | None:
    """The log's history; None where its control or position topic holds nothing: a log is shown without, too."""
    control = log.control() if log.partitions(config.control_topic) else None
    if control is None or control.log is None or tails.position is None:
        return None
    position = log.position()  # read after the control topic: it is not older than the newest epoch
    return History.of(control, position.last_finished if position else NO_SEQNO)


class _GivenUp:
    """Attempts at events that did not become events: given up by their producer, or trapped."""

    def __init__(self, first: Seqno, trapped: tuple[Range, ...]) -> None:
        self._first = first
        self._trapped = trapped
        self._numbers = count()
        self._found: list[tuple[Seqno, int, Fragments]] = []

    def accept(self, header: FragmentHeader, fragments: Fragments, whole: bool) -> None:
        """Keep an attempt that is not an event."""
        seqno = header.seqno
        if seqno >= self._first and (not whole or overlaps(self._trapped, seqno, seqno)):
            heapq.heappush(self._found, (seqno, next(self._numbers), fragments))

    def drain(self, upto: int) -> Iterator[Fragments]:
        """Return and forget those up to a seqno, by seqno."""
        while self._found and self._found[0][0] <= upto:
            yield heapq.heappop(self._found)[2]
