"""Reads messages of this version's schema in Python: their headers, and the check before a library decodes the rest.

The applier's scan, Spark's source and these functions share one compiled reader, so a damaged message is refused by all
of them or by none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from connector.errors import LogDamaged
from connector.log.format import header_reader
from connector.log.format.first_fields import SHOWN, body_of, first_fields
from connector.log.format.framing import FINGERPRINT, LOAD_FINGERPRINT, REGISTERED, schema_of
from connector.log.format.header import FragmentHeader
from connector.log.ids import Kind
from connector.log.rules import Rule, broken, damaged

T = TypeVar("T")


def body_of_this_schema(value: bytes, at: str) -> int:
    """Find where the Avro value of a message begins.

    Args:
        value: the message.
        at: topic-partition@offset, for errors.

    Raises:
        LogDamaged: it is not a fragment, or is written with another schema.
    """
    body = body_of(value, at)
    named = fingerprint_of(value, at)
    if named not in (FINGERPRINT, LOAD_FINGERPRINT):
        raise broken(LogDamaged, Rule.OTHER_SCHEMA, at=at, begins=value[:SHOWN].hex())
    if (first_fields(value, at).kind is Kind.LOAD) != (named == LOAD_FINGERPRINT):
        raise broken(LogDamaged, Rule.KIND_OF_ANOTHER_SCHEMA, at=at, begins=value[:SHOWN].hex())
    return body


def fingerprint_of(value: bytes, at: str) -> str | None:
    """Read the fingerprint, in hex, of the schema that a message names; None: it names none.

    Raises:
        LogDamaged: it is not a fragment, or its header is damaged.
    """
    body = body_of(value, at)
    named = schema_of(value, None)
    if named is not None and named not in {FINGERPRINT, LOAD_FINGERPRINT}:
        return named  # another version may have kinds that this one does not know
    # Single-object encoding names the schema in its first bytes; the fields that every version has are checked even so.
    metadata = _read(header_reader.metadata, value, body, at)
    return schema_of(value, metadata if value[:1] == REGISTERED else None)


def header_of(value: bytes, at: str) -> FragmentHeader:
    """Read a message's header, and nothing after it.

    Raises:
        LogDamaged: it is not a fragment, is written with another schema, or its header is damaged.
    """
    return _read(header_reader.header, value, body_of_this_schema(value, at), at)


def check_fragment(value: bytes, at: str) -> int:
    """Check that a whole message can be read, its changes too.

    Returns:
        The index where its Avro value begins.

    Raises:
        LogDamaged: it is not a fragment, is written with another schema, or is damaged.
    """
    body = body_of_this_schema(value, at)
    _read(header_reader.check_fragment, value, body, at)
    return body


def check_change(data: bytes, at: str) -> None:
    """Check the bytes of a change that came in parts.

    Raises:
        LogDamaged: they are damaged.
    """
    _read(lambda found, _: header_reader.check_change(found), data, 0, at)


def _read(read: Callable[[bytes, int], T], value: bytes, body: int, at: str) -> T:
    try:
        return read(value, body)
    except (ValueError, IndexError) as error:
        raise damaged(error, at=at, begins=value[:SHOWN].hex()) from error
