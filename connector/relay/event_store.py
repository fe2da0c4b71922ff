"""The seam between the apply core and what stores events before the target commits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment
from connector.log.format.message import Message
from connector.log.ids import Seqno


class EventStore(Protocol):
    """Stores the events that are applied next, in the order of the log, each before the target commits it.

    Events that it already has are ignored.

    Raises:
        ConfigError: the events cannot be stored; by all methods.
    """

    def add_range(self, messages: Messages, first: int, end: int) -> None:
        """Store some of these messages, each a whole event, from index `first` to before `end`."""

    def add_segments(self, segments: Sequence[Segment]) -> None:
        """Store the events of segments that together are consecutive events."""

    def add_message(self, message: Message) -> None:
        """Store the next fragment of an event; the first one ends what was stored of an event that was given up."""

    def void(self) -> None:
        """Drop what was stored of an unfinished event."""

    def sync_soon(self) -> None:
        """Begin to make durable what was added; `sync` waits for it."""

    def sync(self) -> None:
        """Wait until what was added before `sync_soon` is durable."""

    def committed(self, upto: Seqno) -> None:
        """The target has committed the events up to one: they are no longer needed."""


class NoRelay:
    """Stores nothing: an applier without `relay.dir`, whose events Kafka has."""

    def add_range(self, messages: Messages, first: int, end: int) -> None:
        """Store nothing."""

    def add_segments(self, segments: Sequence[Segment]) -> None:
        """Store nothing."""

    def add_message(self, message: Message) -> None:
        """Store nothing."""

    def void(self) -> None:
        """Drop nothing."""

    def sync_soon(self) -> None:
        """Begin nothing."""

    def sync(self) -> None:
        """Wait for nothing."""

    def committed(self, upto: Seqno) -> None:
        """Delete nothing."""
