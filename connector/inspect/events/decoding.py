"""Messages of the event topic as what schemas/fragment.avsc says of them: whole, or their headers alone."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any, Final

from connector.log.format import fragment_reader
from connector.log.format.decoded_parts import DecodedParts
from connector.log.format.header import FragmentHeader
from connector.schema import read_change, read_fragment

_NAMES: Final = tuple(field.name for field in fields(FragmentHeader))


def fragment_of(value: bytes, at: str) -> dict[str, Any]:
    """The whole fragment.

    Args:
        value: a message.
        at: topic-partition@offset, for the error.

    Raises:
        LogDamaged: it is not a fragment of our schema.
    """
    return read_fragment(value, at)


def chunks(at: str) -> DecodedParts:
    """For the fragments of one event, whose position is `at`: joins the parts of a change."""
    return DecodedParts(partial(read_change, at=at), at)


def header_of(value: bytes, at: str) -> dict[str, Any]:
    """The same without `changes`, and without reading them: they follow everything else.

    Raises:
        LogDamaged: as `fragment_of`.
    """
    header = fragment_reader.header_of(value, at)
    found = {name: getattr(header, name) for name in _NAMES}
    outcome = header.outcome
    return found | {
        "kind": header.kind.name.lower(),
        "metadata": dict(header.metadata),
        "outcome": None if outcome is None else outcome.name.lower(),
    }


def body_of(value: bytes, at: str) -> bytes:
    """The fragment's own Avro bytes.

    Raises:
        LogDamaged: it is written with another schema.
    """
    return value[fragment_reader.body_of_this_schema(value, at) :]
