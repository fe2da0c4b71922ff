"""Decodes messages of the event topic by schemas/fragment.avsc: whole, or only their headers."""

from __future__ import annotations

import logging
import zlib
from dataclasses import fields
from functools import partial
from typing import Any, Final

from connector.errors import LogDamaged
from connector.log.format import fragment_reader
from connector.log.format.decoded_parts import DecodedParts
from connector.log.format.header import FragmentHeader
from connector.log.rules import Rule, broken
from connector.schema import read_change, read_fragment

LOG: Final = logging.getLogger(__name__)
CRC32_BYTES: Final = 4
_NAMES: Final = tuple(field.name for field in fields(FragmentHeader))


def fragment_of(value: bytes, at: str, *, checksums: bool = True) -> dict[str, Any]:
    """Decode a whole fragment.

    Args:
        value: a message.
        at: topic-partition@offset, for the error.
        checksums: False: warn of a wrong checksum.

    Raises:
        LogDamaged: the message is not a fragment of this schema, or its checksum is wrong.
    """
    found = read_fragment(value, at)
    body = memoryview(value)[fragment_reader.body_of_this_schema(value, at) :]
    if zlib.crc32(body[:-CRC32_BYTES]) != int.from_bytes(body[-CRC32_BYTES:], "big"):
        if checksums:
            raise broken(LogDamaged, Rule.WRONG_CHECKSUM, hint="thl list --no-checksum prints it even so", at=at)
        LOG.warning("the checksum of a fragment is wrong: its values may be, too", extra={"at": at})
    return found


def chunks(at: str) -> DecodedParts:
    """Return an object that joins the parts of a change, for the fragments of one event at `at`."""
    return DecodedParts(partial(read_change, at=at), at)


def header_of(value: bytes, at: str) -> dict[str, Any]:
    """Decode a fragment's header; `changes` are last and not read.

    Raises:
        LogDamaged: see `fragment_of`.
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
    """Return the fragment's Avro bytes.

    Raises:
        LogDamaged: the message has another schema.
    """
    return value[fragment_reader.body_of_this_schema(value, at) :]
