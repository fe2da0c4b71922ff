"""Lists events of the log in memory that does not grow with the log or an event.

Binary search finds the offsets of a range of seqnos, so listing a part of a log costs as much as the part. The message
after an attempt shows if it was given up: a small attempt is held until then, a large one is read again.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from connector.config.model import Config
from connector.errors import ConfigError
from connector.inspect.thl_events.attempts import Attempt, attempts
from connector.inspect.thl_events.choice import SLACK, Choice, EventLocation
from connector.inspect.thl_events.completeness import Completeness, floor_of
from connector.inspect.thl_events.decoding import chunks, fragment_of, header_of
from connector.inspect.thl_events.partitions import Partitions
from connector.kafka.ends import last_ending, log_ends
from connector.kafka.log_reader import LogReader
from connector.kafka.tails import read_tails
from connector.log.epochs.fork import Range, overlaps
from connector.log.format.decoded_parts import DecodedParts, without_parts


@dataclass(frozen=True, slots=True)
class Listed:
    """One fragment.

    Args:
        topic, partition, offset: topic, partition and offset of the message.
        fragment: the fields of schemas/fragment.avsc.
        voided: true if its attempt was given up, is unfinished, or is trapped.
        value: the message.
        file: the file of the relay that has it; "": it is on Kafka.
    """

    topic: str
    partition: int
    offset: int
    fragment: dict[str, Any]
    voided: bool
    value: bytes = b""
    file: str = ""

    @property
    def place(self) -> str:
        """topic-partition@offset, or the name of the relay's file."""
        return self.file or f"{self.topic}-{self.partition}@{self.offset}"


class LogList:
    """Lists the events of one log.

    Args:
        config: the service and its brokers.
        checksums: False: fragments with a wrong checksum are listed, with a warning.
    """

    def __init__(self, config: Config, *, checksums: bool = True) -> None:
        self._config = config
        self._checksums = checksums
        self.topic = config.topic
        self._partitions = Partitions(config)
        self._trapped: tuple[Range, ...] | None = None

    def events(self, choice: Choice) -> Iterator[Listed]:
        """The chosen fragments, by seqno and fragno; those of attempts that were given up in their partition's order.

        Raises:
            BrokerUnavailable: the brokers do not answer.
            ConfigError: there is no such log, or it does not have the one event that is named.
            LogDamaged: a message is not a fragment.
        """
        neighbours = _Neighbours(choice)
        for attempt in self.attempts(choice):
            neighbours.accept(attempt)
            if choice.includes(attempt):
                yield from self.fragments(attempt)
                if choice.gtid is not None:
                    return
        if choice.one:
            neighbours.check()

    def attempts(self, choice: Choice) -> Iterator[Attempt]:
        """All attempts within the chosen seqnos, and about the chosen times, by seqno.

        Raises:
            LogDamaged: a finished event is missing: lost at a partition's end, or between two others.
        """
        tails = read_tails(self._config)  # before the bounds, so that these include all the tails
        bounds = self._partitions.bounds()

        def numbers() -> tuple[int, int]:
            ends = log_ends(self._config, bounds)
            return ends.oldest, ends.newest

        low, high = choice.bounds(numbers)
        if low is not None and high is not None and low > high:
            return
        spans = {partition: self._span(partition, choice, span, low, high) for partition, span in bounds.items()}
        last = None if choice.last is not None else high
        listed_from = {partition: (start, bounds[partition][1]) for partition, (start, _) in spans.items()}
        floor = floor_of(self._config, tails, listed_from)
        whole = Completeness(self.topic, tails, max(low or 0, 0), last, floor)
        streams = [self._attempts(partition, choice, span, whole) for partition, span in spans.items()]
        for attempt in heapq.merge(*streams, key=lambda attempt: (attempt.seqno, attempt.epoch, attempt.first)):
            if attempt.whole:
                whole.accept(attempt.seqno)
            yield self.judged(attempt)
        whole.end()

    def judged(self, attempt: Attempt) -> Attempt:
        """The attempt, marked if it is trapped by an epoch that existed at the first call."""
        if self._trapped is None:
            with LogReader(self._config) as log:
                self._trapped = log.control().trapped
        trapped = bool(self._trapped) and overlaps(self._trapped, attempt.seqno, attempt.seqno)
        return replace(attempt, trapped=True) if trapped else attempt

    def fragments(self, attempt: Attempt) -> Iterator[Listed]:
        """Yield an attempt's fragments; an attempt that was too large to keep is read again."""
        messages = attempt.held or self._partitions.messages(attempt.partition, attempt.first, attempt.last + 1)
        return listed(self.topic, attempt.partition, messages, voided=attempt.voided, checksums=self._checksums)

    def first_whole(self, log: LogReader, partition: int, start: int, end: int) -> Attempt | None:
        """The first whole attempt in a range of offsets."""
        found = self._partitions.messages(partition, start, end, log)
        header = partial(self._header, partition)
        return next((attempt for attempt in attempts(partition, found, header) if attempt.whole), None)

    def last_ending(self, log: LogReader, partition: int, start: int, end: int) -> dict[str, Any] | None:
        """The header of the last fragment that finishes an event."""
        found = last_ending(self.topic, log, partition, start, end)
        return None if found is None else self._header(partition, *found)

    def _span(
        self, partition: int, choice: Choice, bounds: tuple[int, int], low: int | None, high: int | None
    ) -> tuple[int, int]:
        """The offsets to list of a partition."""
        start, end = bounds
        if low is not None:
            start = self._partitions.offset_of(low, partition, bounds)
        if high is not None:
            end = self._partitions.offset_of(high + 1, partition, (start, end))
        if choice.since is not None:
            start = self._partitions.before_time(choice.since, SLACK, partition, (start, end))
        return start, end

    def _attempts(
        self, partition: int, choice: Choice, span: tuple[int, int], whole: Completeness
    ) -> Iterator[Attempt]:
        found = self._partitions.messages(partition, *span)
        for attempt in attempts(partition, found, partial(self._header, partition)):
            if choice.ends_before(attempt):
                whole.stops(attempt.seqno)
                return
            yield attempt

    def _header(self, partition: int, offset: int, value: bytes) -> dict[str, Any]:
        return header_of(value, self._partitions.at(partition, offset))


def listed(
    topic: str, partition: int, messages: Iterable[tuple[int, bytes]], *, voided: bool, checksums: bool = True
) -> Iterator[Listed]:
    """The fragments of one attempt at an event, decoded.

    A change in parts belongs to the fragment with its last part; where the event's first fragment is gone, no fragment
    has it.

    Args:
        topic, partition: topic and partition of the messages.
        messages: the messages with their offsets, in order.
        voided: true if the attempt is not an event; see `Listed`.
        checksums: see `LogList`.

    Raises:
        LogDamaged: a message is not a fragment.
    """
    parts: DecodedParts | None = None
    for number, (offset, value) in enumerate(messages):
        at = f"{topic}-{partition}@{offset}"
        fragment = fragment_of(value, at, checksums=checksums)
        if number == 0 and not fragment["fragno"]:
            parts = chunks(at)
        changes = fragment["changes"]
        fragment["changes"] = parts.whole(fragment["fragno"], changes) if parts else without_parts(changes)
        yield Listed(topic, partition, offset, fragment, voided, value)


class _Neighbours:
    """The events around the one that is named, for the error that the log does not have it."""

    def __init__(self, choice: Choice) -> None:
        self._choice = choice
        self._found = False
        self._before = self._after = ""

    def accept(self, attempt: Attempt) -> None:
        if not self._choice.one:
            return
        self._found = self._found or self._choice.includes(attempt)
        if self._choice.event is not None and attempt.ending is not None:
            text = f"seqno {attempt.seqno} ({attempt.ending['event_id']})"
            if EventLocation.parse(attempt.ending["event_id"])[:2] < self._choice.event[:2]:
                self._before, self._after = text, ""
            elif not self._after:
                self._after = text

    def check(self) -> None:
        if self._found:
            return
        choice = self._choice
        if choice.event is not None:
            between = " and ".join(text for text in (self._before, self._after) if text)
            raise ConfigError(
                "the log has no event with this id",
                hint=f"the nearest events: {between}" if between else "",
                event=f"{choice.event.file}:{choice.event.end}",
            )
        if choice.gtid is not None:
            raise ConfigError("the log has no event with this GTID", gtid=choice.gtid)
        raise ConfigError(
            "the log has no finished event with this seqno", hint="thl info shows the log's seqnos", seqno=choice.low
        )
