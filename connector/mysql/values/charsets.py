"""Decodes text of MySQL's character sets."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from functools import cache
from typing import Final

from connector.errors import ValueNotRepresentable
from connector.mysql.values import multibyte
from connector.mysql.values.charset_data import SINGLE_BYTE
from connector.mysql.values.text import meaningless, multibyte_text

BINARY: Final = "binary"
UTF8: Final = frozenset({"utf8mb4", "utf8mb3"})
# U+DC00 plus a byte represents an invalid byte.
STRAY: Final = 0xDC00
STRAYS: Final = re.compile("[\udc00-\udcff]")
ASCII: Final = re.compile(rb"[\x00-\x7f]+")
# Sets whose Python codec equals MySQL's.
WIDE: Final = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
# The most bytes of a character, if more than one.
WIDTH: Final = {"utf8mb4": 4, "utf8mb3": 3, "ucs2": 2, "utf16": 4, "utf16le": 4, "utf32": 4, **multibyte.LONGEST}


@cache
def width(charset: str) -> int:
    """The most bytes of a character of the set: MySQL's mbmaxlen."""
    return WIDTH.get(charset, 1)


@cache
def alphabet(charset: str) -> str:
    """The 256 characters of a single-byte set, U+0000 for undefined bytes above 0; "" for other sets."""
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


def decode_leniently(text: bytes, charset: str) -> str:
    """Decodes text that may be invalid in its character set; valid text as `decode` does.

    An invalid byte becomes U+DC00 plus the byte, which no valid text has.

    If the first of two bytes is invalid with the next byte, both are, where a second byte may be ASCII: the server's
    parser skips both. A backslash of two bytes (sjis, ujis) becomes two such characters: it escapes nothing.
    """
    if charset in UTF8 or charset == BINARY:
        return text.decode(errors="surrogateescape")
    try:
        found = decode(text, charset)
    except ValueNotRepresentable:
        if charset in WIDE:  # no session's
            raise
    else:
        if "\\" not in found or charset not in multibyte.LONGEST:
            return found
    if charset not in multibyte.LONGEST:
        chars = alphabet(charset)
        return "".join(chars[byte] if chars[byte] != "\0" or not byte else chr(STRAY + byte) for byte in text)
    return "".join(_characters(text, charset))


def _characters(text: bytes, charset: str) -> Iterator[str]:
    """The characters of a text in a multi-byte set."""
    codes, longest = multibyte.codes(charset), multibyte.LONGEST[charset]
    ascii_seconds = not charset.startswith("euc") and charset not in {"ujis", "gb2312"}
    at = 0
    while at < len(text):
        run = ASCII.match(text, at)
        if run is not None:
            yield run[0].decode("ascii")
            at = run.end()
            continue
        for size in range(1, longest + 1):
            try:
                found = multibyte_text(text[at : at + size], codes, longest)
            except ValueNotRepresentable:
                continue
            yield found if found != "\\" else "".join(chr(STRAY + byte) for byte in text[at : at + size])
            break
        else:
            second = text[at + 1 : at + 2]
            size = 2 if ascii_seconds and second >= b"\x40" else 1
            yield "".join(chr(STRAY + byte) for byte in text[at : at + size])
        at += size


def shown(text: str) -> str:
    """A leniently decoded text for messages: invalid bytes as `\\xe9`."""
    return STRAYS.sub(lambda found: f"\\x{ord(found[0]) - STRAY:02x}", text)


def strays(text: str) -> bool:
    """True if a leniently decoded text has invalid bytes."""
    return STRAYS.search(text) is not None


def decode(text: bytes, charset: str) -> str:
    """Decodes text of a session or of a table's definition; `binary` is read as UTF-8.

    Raises:
        ValueNotRepresentable: the text is not valid in the set.
    """
    try:
        if charset in UTF8 or charset == BINARY:
            return text.decode()
        if charset in WIDE:
            return text.decode(WIDE[charset])
    except UnicodeDecodeError as error:
        raise meaningless(f"a text is not valid in {charset}", text, error.start) from None
    if charset in multibyte.LONGEST:
        return multibyte_text(text, multibyte.codes(charset), multibyte.LONGEST[charset])
    chars = alphabet(charset)
    for at, byte in enumerate(text):
        if byte and chars[byte] == "\0":
            raise meaningless(f"a text is not valid in {charset}", text, at)
    return "".join(chars[byte] for byte in text)
