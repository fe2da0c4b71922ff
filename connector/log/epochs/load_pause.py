"""A reason for which no round of loads begins, and the one that the stream's position gives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from connector.log.transaction.position import SourcePosition

MOST_BEHIND: Final = 16 << 20  # bytes of the source's log between the stream and a round's position


class PauseCause(StrEnum):
    """The condition that a load waits for."""

    PURGE = "purge"  # the stream is in a file that is purged soon
    REPLICA_STOPPED = "replica_stopped"  # the source does not replicate
    REPLICA_LAG = "replica_lag"
    BEHIND = "behind"  # the stream has to catch up, as after any pause


@dataclass(frozen=True, slots=True)
class LoadPause:
    """A reason for which no round of loads begins.

    Args:
        cause: what it waits for.
        why: the reason as a sentence, with ids and figures.
        hint: the remedy; "": it ends by itself.
    """

    cause: PauseCause
    why: str
    hint: str = ""

    def __str__(self) -> str:
        """The reason for people."""
        return f"{self.cause}: {self.why}"

    def as_object(self) -> dict[str, str]:
        """The reason for JSON."""
        return {"cause": self.cause, "why": self.why, "remedy": self.hint}

    @property
    def ordinary(self) -> bool:
        """True if the stream just catches up."""
        return self.cause is PauseCause.BEHIND


def stream_behind(read: SourcePosition, end: SourcePosition) -> LoadPause | None:
    """The pause of a stream too far from a position for a round, at whose end it would wait too long; None: it is not.

    Args:
        read: the position of the stream.
        end: the end of the source's log, or a round's position.
    """
    if end.file == read.file and end.offset - read.offset <= MOST_BEHIND:
        return None
    return LoadPause(PauseCause.BEHIND, f"the stream is behind: at {read}, and the source's log ends at {end}")
