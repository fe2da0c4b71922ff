"""Text in MySQL's character sets."""

from __future__ import annotations

from functools import cache

from connector.errors import ConnectorError
from connector.mysql.values import multibyte
from connector.mysql.values.charsets import BINARY, UTF8, WIDE, alphabet, decode

_SMALL = {"utf8mb3", "ucs2"}  # nothing above U+FFFF
# sjis and ujis store a backslash for the first; others store the second for characters that they lack.
_LOSSY = {
    "\uff3c",
    "\ufffd",
}
_UNITS = {"ucs2": 2, "utf16": 2, "utf16le": 2, "utf32": 4}


def encoded(text: str, charset: str) -> bytes | None:
    """The bytes of a text; None if the set lacks a character or has several codes for it."""
    if charset == BINARY or not charset or not representable(text, charset):
        return None
    if charset in UTF8:
        return text.encode()
    if charset in WIDE:
        return text.encode(WIDE[charset])
    if charset in multibyte.LONGEST:
        return text.encode() if text.isascii() else None
    chars = alphabet(charset)
    return bytes(chars.index(char) for char in text)


def decoded(raw: bytes, charset: str) -> str | None:
    """The text of bytes, padded with zeros on the left to whole characters; None if they are not valid."""
    if not (charset in UTF8 or charset in WIDE or charset in multibyte.LONGEST or alphabet(charset)):
        return None
    unit = _UNITS.get(charset, 1)
    raw = bytes(-len(raw) % unit) + raw
    try:
        text = decode(raw, charset)
    except ConnectorError:
        return None
    return text if representable(text, charset) else None


def representable(text: str, charset: str) -> bool:
    """True if the set returns every character unchanged.

    A server refuses characters that a set lacks; so for an unknown set only characters that some set changes matter.
    """
    if not charset:
        return not _LOSSY & set(text)
    if charset in UTF8 or charset in WIDE or charset == "gb18030":
        return not any("\ud800" <= char <= "\udfff" or (charset in _SMALL and char > "\uffff") for char in text)
    if charset in multibyte.LONGEST:
        return text.isascii() or all(char.isascii() or ord(char) in _codes(charset) for char in text)
    chars = alphabet(charset)
    return bool(chars) and all(char == "\0" or chars.count(char) == 1 for char in text)


@cache
def _codes(charset: str) -> frozenset[int]:
    return frozenset(memoryview(multibyte.codes(charset)).cast("H")) - {0, 0xFFFD}
