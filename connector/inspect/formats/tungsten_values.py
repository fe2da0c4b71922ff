"""Formats values as Tungsten does with `-charset` and `-hex`."""

from __future__ import annotations

import codecs
from typing import Final

from connector.errors import ValueNotRepresentable
from connector.inspect.formats.tungsten import ShownValue, shown, shown_text
from connector.mysql.values import charsets, multibyte

_BY_NAME: Final = charsets.UTF8 | charsets.WIDE.keys() | multibyte.LONGEST.keys()


def is_charset(name: str) -> bool:
    """True for the name of a character set: MySQL's (`latin1`), or another one that Python knows (`ISO-8859-15`)."""
    if name in _BY_NAME or charsets.alphabet(name):
        return True
    try:
        return codecs.lookup(name)._is_text_encoding  # base64 and the like are no character sets
    except LookupError:
        return False


def value_formatter(charset: str | None, *, hexadecimal: bool) -> ShownValue:
    """The formatter for the options.

    Args:
        charset: shows bytes as text in this character set, if they are valid in it; None: in hexadecimal.
        hexadecimal: also shows the bytes of a text after it, `a (x61)`; of a text of the log in UTF-8.
    """

    def shown_value(value: object) -> str:
        if isinstance(value, bytes):
            text = None if charset is None else _decoded(value, charset)
            if text is None:
                return shown(value)
            data = value
        elif isinstance(value, str):
            text, data = value, value.encode()
        else:
            return shown(value)
        return f"{shown_text(text)} (x{data.hex()})" if hexadecimal else shown_text(text)

    return shown_value


def _decoded(data: bytes, charset: str) -> str | None:
    """The text; None if the bytes are not valid in the character set."""
    try:
        if charset in _BY_NAME or charsets.alphabet(charset):
            return charsets.decode(data, charset)
        return data.decode(charset)
    except (ValueNotRepresentable, UnicodeDecodeError):
        return None
