"""The way of one event: when it was committed on the source, published on Kafka and applied to the target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class ClockOf(StrEnum):
    """The clock by which a time is; times by different clocks differ by as much as these."""

    SOURCE = "source"
    PRODUCER = "producer"
    BROKER = "broker"
    APPLIER = "applier"


@dataclass(frozen=True, slots=True)
class Instant:
    """A time on the way of an event.

    Args:
        at: µs since 1970 UTC.
        clock: the clock that showed it.
        origin: where it is written.
        latest: true if the event was there at this time at the latest: the exact time is not written anywhere.
    """

    at: int
    clock: ClockOf
    origin: str
    latest: bool = False

    def as_object(self) -> dict[str, object]:
        """The time for JSON."""
        return {
            "time": _shown(self.at),
            "microseconds": self.at,
            "clock": self.clock,
            "from": self.origin,
            "exact": not self.latest,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTrace:
    """The way of an event.

    Args:
        seqno, epoch, event_id, gtid, shard: of the event; `gtid` is None where the source has no GTIDs.
        messages: topic-partition@offset of its first and last message.
        committed: on the source; None: the log does not have the time.
        first_published, published: the first and the last message on Kafka.
        applied: on the target; None: it was not.
        target: what the target says instead of a time.
    """

    seqno: int
    epoch: int
    event_id: str
    gtid: str | None
    shard: str
    messages: tuple[str, str]
    committed: Instant | None
    first_published: Instant
    published: Instant
    applied: Instant | None
    target: str = ""

    def lines(self) -> Iterator[str]:
        """The way for people: each time with its origin, and what has passed since the time before."""
        gtid = f", GTID {self.gtid}" if self.gtid else ""
        yield f"event {self.seqno} of epoch {self.epoch}, {self.event_id}{gtid}, shard {self.shard}"
        before: Instant | None = None
        steps = {
            "committed": self.committed,
            "published from": self.first_published,
            "published": self.published,
            "applied": self.applied,
        }
        for name, instant in steps.items():
            if instant is None:
                yield f"{name:<16} {self.target if name == 'applied' else 'unknown'}"
                continue
            since = "" if before is None else f", {_passed(instant.at - before.at)} after the line above"
            time = f"{'by ' if instant.latest else ''}{_shown(instant.at)}"
            yield f"{name:<16} {time}  {instant.clock}'s clock, {instant.origin}{since}"
            before = instant

    def as_object(self) -> dict[str, object]:
        """The way for JSON."""
        return {
            "seqno": self.seqno,
            "epoch": self.epoch,
            "eventId": self.event_id,
            "gtid": self.gtid,
            "shard": self.shard,
            "firstMessage": self.messages[0],
            "lastMessage": self.messages[1],
            "committed": self.committed and self.committed.as_object(),
            "publishedFrom": self.first_published.as_object(),
            "published": self.published.as_object(),
            "applied": self.applied and self.applied.as_object(),
            "target": self.target,
        }


def _shown(microseconds: int) -> str:
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat(" ", "microseconds")


def _passed(microseconds: int) -> str:
    return f"{microseconds / 1000:.1f} ms" if abs(microseconds) < 10_000_000 else f"{microseconds / 1e6:.1f} s"
