"""The first bytes of a message of the event topic, and the schema that they name.

    C3 01  8 bytes, the schema's CRC-64-AVRO fingerprint     Avro's single-object encoding
    00     4 bytes, the schema's number in a registry        Confluent's wire format

A log may hold both: a producer can begin or stop to use a registry between two epochs. A number means nothing without
its registry, which no reader of this package asks. A message with a number therefore also has the fingerprint, in the
header's metadata under `schema`; metadata is at the same place in every version of the schema.
"""

from __future__ import annotations

from typing import Final

SINGLE_OBJECT: Final = b"\xc3\x01"
SINGLE_OBJECT_BYTES: Final = 10
REGISTERED: Final = b"\x00"
REGISTERED_BYTES: Final = 5

FINGERPRINT: Final = "dba8cdb91f7e3c7e"
"""CRC-64-AVRO of the parsing canonical form of `schemas/fragment.avsc`, little-endian, in hex."""

LOAD_FINGERPRINT: Final = "914fcd5d5ada4090"
"""The same of `schemas/load.avsc`, with which events of the kind `load` are written: earlier versions refuse it."""

SCHEMA: Final = "schema"
"""The metadata key of the fingerprint: eight bytes as in single-object encoding, in hex."""


def body_at(value: bytes) -> int:
    """Find where a message's Avro value begins.

    Raises:
        ValueError: it begins as no message of the event topic does.
    """
    if value[:2] == SINGLE_OBJECT:
        return SINGLE_OBJECT_BYTES
    if value[:1] == REGISTERED:
        return REGISTERED_BYTES
    raise ValueError(f"it begins with {value[:SINGLE_OBJECT_BYTES].hex()}")


def registered(number: int) -> bytes:
    """The five bytes before a value whose schema has this number in the registry."""
    return REGISTERED + number.to_bytes(4, "big")


def schema_of(value: bytes, metadata: object) -> str | None:
    """The fingerprint, in hex, of the schema that a message names; None if it names none.

    Args:
        value: the message.
        metadata: the metadata of its header.
    """
    if value[:2] == SINGLE_OBJECT:
        return value[2:SINGLE_OBJECT_BYTES].hex()
    schema = metadata.get(SCHEMA) if isinstance(metadata, dict) else None
    return schema if isinstance(schema, str) else None
