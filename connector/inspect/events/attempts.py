"""What a partition's messages come to: attempts at events, of which some were given up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from connector.log.format.first_fields import FirstFields, first_fields
from connector.log.ids import Epoch, Kind, Seqno

HELD_BYTES: Final = 1 << 20  # of an attempt; a larger one is read again when it is wanted


@dataclass(frozen=True, slots=True)
class Attempt:
    """Fragments of one event, as one producer gave them in one go.

    Args:
        partition: where they stand.
        seqno, epoch: of the event, and of whoever gave it.
        first, last: offsets of the first and the last fragment that is there.
        ending: the last fragment's header, as schemas/fragment.avsc says; None where the attempt is not whole.
        held: all of its messages by offset; None when they are too large to be held.
        trapped: a later epoch goes on without it.
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
        """It did not happen: not whole, or trapped."""
        return self.trapped or not self.whole

    @property
    def whole(self) -> bool:
        """It has its fragment 0 and its last. Else it was given up, is not finished, or lost its beginning to age."""
        return self.ending is not None


@dataclass(slots=True)
class _Open:
    """An attempt whose last fragment has not come."""

    partition: int
    place: FirstFields
    first: int
    last: int = 0
    size: int = 0
    held: list[tuple[int, bytes]] | None = field(default_factory=list)

    def take(self, offset: int, value: bytes) -> None:
        self.last = offset
        self.size += len(value)
        if self.size > HELD_BYTES:
            self.held = None
        if self.held is not None:
            self.held.append((offset, value))

    def ended(self, ending: dict[str, Any] | None) -> Attempt:
        held = None if self.held is None else tuple(self.held)
        return Attempt(self.partition, self.place.seqno, self.place.epoch, self.first, self.last, ending, held)


class Gathering:
    """Takes a partition's messages in order, and gives each attempt as soon as it is known what became of it.

    Args:
        partition: whose messages.
        header: reads the header of the last fragment of a whole one.
    """

    def __init__(self, partition: int, header: Callable[[int, bytes], dict[str, Any]]) -> None:
        self._partition = partition
        self._header = header
        self._open: _Open | None = None

    def take(self, offset: int, value: bytes) -> Iterator[Attempt]:
        """The next message.

        Raises:
            LogDamaged: it is not a fragment.
        """
        place = first_fields(value, f"partition {self._partition}, offset {offset}")
        if place.fragno == 0:  # so is an epoch's marker
            yield from self.end()
        if place.kind is Kind.EPOCH:
            return
        begun = self._open = self._open or _Open(self._partition, place, offset)
        begun.take(offset, value)
        if place.last_frag:
            self._open = None
            yield begun.ended(self._header(offset, value) if begun.place.fragno == 0 else None)

    def end(self) -> Iterator[Attempt]:
        """Nothing more comes: what has begun is not whole."""
        if self._open is not None:
            begun, self._open = self._open, None
            yield begun.ended(None)


def attempts(
    partition: int, messages: Iterable[tuple[int, bytes]], header: Callable[[int, bytes], dict[str, Any]]
) -> Iterator[Attempt]:
    """All attempts of a partition, in its order.

    Args:
        partition, header: as `Gathering`.
        messages: offsets and values.

    Raises:
        LogDamaged: a message is not a fragment.
    """
    gathering = Gathering(partition, header)
    for offset, value in messages:
        yield from gathering.take(offset, value)
    yield from gathering.end()
