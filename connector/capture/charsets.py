"""Which character set a collation id stands for, and how its bytes become UTF-8."""

from __future__ import annotations

import struct
from functools import cache
from typing import Final

from connector.capture import mariadb_charsets, multibyte
from connector.capture.charset_data import COLLATIONS, SINGLE_BYTE
from connector.capture.text import meaningless, multibyte_text
from connector.errors import Unsupported

BINARY: Final = "binary"
UTF8: Final = frozenset({"utf8mb4", "utf8mb3"})
# Sets whose Python codec is exactly MySQL's: every code unit has one meaning.
WIDE: Final = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
# The most bytes a character has, where that is not one.
WIDTH: Final = {"utf8mb4": 4, "utf8mb3": 3, "ucs2": 2, "utf16": 4, "utf16le": 4, "utf32": 4, **multibyte.LONGEST}


@cache
def charset_of(collation: int) -> str:
    """The name of the character set that a collation of MySQL or MariaDB belongs to.

    Raises:
        Unsupported: the id is not known.
    """
    twin = mariadb_charsets.padded_twin(collation)
    for first, last, name in COLLATIONS:
        if first <= twin <= last:
            return name
    if known := mariadb_charsets.charset_of(twin):
        return known
    raise Unsupported(f"the collation id {collation} is not known")


@cache
def collation_of(charset: str) -> int:
    """A collation of a character set, whichever.

    Raises:
        Unsupported: the set is not known.
    """
    found = next((first for first, _, name in COLLATIONS if name == charset), None)
    if found is None:
        raise Unsupported(f"the character set {charset} is not known")
    return found


@cache
def width(charset: str) -> int:
    """How many bytes a character of the set can have: what MySQL calls mbmaxlen."""
    return WIDTH.get(charset, 1)


@cache
def alphabet(charset: str) -> str:
    """The 256 characters of a single-byte set, U+0000 where a byte above 0 means nothing; "" for other sets."""
    lower = "".join(map(chr, range(128)))
    if charset == "ascii":
        return lower + "\0" * 128
    known = SINGLE_BYTE.get(charset, "")
    return known if len(known) in {0, 256} else lower + known


@cache
def table(charset: str) -> bytes:
    """The set's 256 entries for `text.pyx` (UTF-8 in the lower three bytes, length in the fourth); b"" for others."""
    return b"".join(
        struct.pack("=I", int.from_bytes(char.encode(), "little") | len(char.encode()) << 24)
        if byte == 0 or char != "\0"
        else bytes(4)
        for byte, char in enumerate(alphabet(charset))
    )


def decode(text: bytes, charset: str) -> str:
    """Text of a session or of a table's definition; `binary` is taken for UTF-8.

    Raises:
        ValueNotRepresentable: the bytes mean nothing in it.
    """
    try:
        if charset in UTF8 or charset == BINARY:
            return text.decode()
        if charset in WIDE:
            return text.decode(WIDE[charset])
    except UnicodeDecodeError as error:
        raise meaningless(f"a text holds bytes that mean nothing in {charset}", text, error.start) from None
    if charset in multibyte.LONGEST:
        return multibyte_text(text, multibyte.codes(charset), multibyte.LONGEST[charset])
    chars = alphabet(charset)
    for at, byte in enumerate(text):
        if byte and chars[byte] == "\0":
            raise meaningless(f"a text holds a byte that means nothing in {charset}", text, at)
    return "".join(chars[byte] for byte in text)
