"""The first fields of a fragment: enough to find the last event of a log."""

from __future__ import annotations

from typing import Final, NamedTuple

from connector.errors import LogDamaged
from connector.log.format import header_reader
from connector.log.format.framing import FINGERPRINT, body_at, schema_of
from connector.log.ids import Epoch, Kind, Seqno, ends_event
from connector.log.rules import Rule, broken, damaged

SHOWN: Final = 10  # bytes of a message that an error shows


class FirstFields(NamedTuple):
    """The fields up to `prev_seqno`: they identify a fragment and its event."""

    seqno: Seqno
    fragno: int
    last_frag: bool
    epoch: Epoch
    kind: Kind
    prev_seqno: Seqno

    @property
    def finishes(self) -> bool:
        """True for the last fragment of an event."""
        return ends_event(self.last_frag, self.kind)


def first_fields(value: bytes, at: str) -> FirstFields:
    """Read the beginning of a message of the event topic.

    Args:
        value: the message.
        at: topic-partition@offset, for the error.

    Raises:
        LogDamaged: not a fragment.
    """
    body = body_of(value, at)
    try:
        found = FirstFields(*header_reader.first_fields(value, body))
    except (IndexError, ValueError) as error:
        raise damaged(error, at=at, begins=value[:SHOWN].hex()) from error
    if found.kind is Kind.LOAD and schema_of(value, None) == FINGERPRINT:
        raise broken(LogDamaged, Rule.KIND_OF_ANOTHER_SCHEMA, at=at, begins=value[:SHOWN].hex())
    return found


def body_of(value: bytes, at: str) -> int:
    """Find where a message's Avro value begins.

    Args:
        value: the message.
        at: topic-partition@offset, for the error.

    Raises:
        LogDamaged: not a fragment.
    """
    try:
        return body_at(value)
    except ValueError as error:
        raise broken(LogDamaged, Rule.NOT_A_FRAGMENT, at=at, begins=value[:SHOWN].hex()) from error
