"""Avro's primitive encodings for Python code (Avro specification, "Binary Encoding")."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Final

from connector.log.format.varint import write_long

long: Final = write_long
"""A long or int."""


def boolean(value: bool) -> bytes:
    """One byte."""
    return b"\x01" if value else b"\x00"


def string(value: str) -> bytes:
    """Length in bytes, then UTF-8."""
    return block(value.encode())


def block(value: bytes) -> bytes:
    """Length in bytes, then the bytes."""
    return long(len(value)) + value


def union(value: int | float | str | bytes | None) -> bytes:
    """A value of a row: the union of null, long, double, string and bytes (`schemas/fragment.avsc`)."""
    match value:
        case None:
            return b"\x00"
        case int():
            return b"\x02" + long(value)
        case float():
            return b"\x04" + struct.pack("<d", value)
        case str():
            return b"\x06" + string(value)
        case bytes():
            return b"\x08" + block(value)


def array(items: Iterable[bytes]) -> bytes:
    """One block of already encoded items, and the empty block that ends every array."""
    encoded = list(items)
    return (long(len(encoded)) + b"".join(encoded) if encoded else b"") + b"\x00"


def string_map(values: Mapping[str, str]) -> bytes:
    """A map of strings: one block, in the mapping's order, and the empty block."""
    return array(string(key) + string(value) for key, value in values.items())
