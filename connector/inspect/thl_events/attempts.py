"""Groups a partition's messages into attempts at events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from connector.log.format.first_fields import FirstFields, first_fields
from connector.log.ids import Epoch, Kind, Seqno

KEPT_BYTES: Final = 1 << 20  # bytes of an attempt in memory; a larger one is read again when it is printed


@dataclass(frozen=True, slots=True)
class Attempt:
    """Fragments of one event that one producer wrote one after the other.

    Args:
        partition: partition of the event topic.
        seqno: seqno of the event.
        epoch: epoch of the producer.
        first, last: offsets of the first and the last existing fragment.
        ending: the last fragment's header, as in schemas/fragment.avsc; None if the attempt is not whole.
        held: the messages with their offsets; None if they are too large to keep.
        trapped: a later epoch left the event out.
    """

    partition: int
    seqno: Seqno
    epoch: Epoch
    first: int
    last: int
    ending: dict[str, Any] | None
    held: tuple[tuple[int, bytes], ...] | None
    trapped: bool = False

    @property
    def voided(self) -> bool:
        """True if the attempt is not an event: incomplete or trapped."""
        return self.trapped or not self.whole

    @property
    def whole(self) -> bool:
        """True if it has its first and last fragment; retention may have deleted the first."""
        return self.ending is not None


@dataclass(slots=True)
class _OpenAttempt:
    """An attempt without its last fragment."""

    partition: int
    fields: FirstFields
    first: int
    last: int = 0
    size: int = 0
    held: list[tuple[int, bytes]] | None = field(default_factory=list)

    def add(self, offset: int, value: bytes) -> None:
        self.last = offset
        self.size += len(value)
        if self.size > KEPT_BYTES:
            self.held = None
        if self.held is not None:
            self.held.append((offset, value))

    def ended(self, ending: dict[str, Any] | None) -> Attempt:
        held = None if self.held is None else tuple(self.held)
        return Attempt(self.partition, self.fields.seqno, self.fields.epoch, self.first, self.last, ending, held)


def attempts(
    partition: int, messages: Iterable[tuple[int, bytes]], header: Callable[[int, bytes], dict[str, Any]]
) -> Iterator[Attempt]:
    """Yield all attempts of a partition in order, each as soon as it ends.

    Args:
        partition: partition of the event topic.
        messages: offsets and values, in order.
        header: reads the header of the last fragment of a whole attempt.

    Raises:
        LogDamaged: a message is not a fragment.
    """
    attempt: _OpenAttempt | None = None
    for offset, value in messages:
        fields = first_fields(value, f"partition {partition}, offset {offset}")
        if fields.fragno == 0 and attempt is not None:  # an event or an epoch begins
            yield attempt.ended(None)
            attempt = None
        if fields.kind is Kind.EPOCH:
            continue
        attempt = attempt or _OpenAttempt(partition, fields, offset)
        attempt.add(offset, value)
        if fields.last_frag:
            yield attempt.ended(header(offset, value) if attempt.fields.fragno == 0 else None)
            attempt = None
    if attempt is not None:
        yield attempt.ended(None)
