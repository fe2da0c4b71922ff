"""INTVAR, RAND and USER_VAR events: values for the next statement.

The formats are those of MySQL's `libs/mysql/binlog/event/statement_events.h`. A user variable becomes an SQL
expression with the same value and type: `1.5` would be a decimal, so a double is `1.5e0`.
"""

from __future__ import annotations

import math
import struct
from typing import Final

from connector.errors import CorruptBinlog, Unsupported
from connector.log.transaction import statement_options as replay
from connector.mysql.fields import Fields
from connector.mysql.values.charsets import BINARY
from connector.mysql.values.collations import charset_of, collation_name

INTVAR, RAND, USER_VAR = 5, 13, 14
INTEGERS: Final = {1: replay.LAST_INSERT_ID, 2: replay.INSERT_ID}
STRING, REAL, INTEGER, ROW, DECIMAL = range(5)  # Item_result
UNSIGNED: Final = 1  # flag
BYTES_OF_DIGITS: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
GROUP: Final = 9  # digits in four bytes
MOST_DIGITS: Final = 81  # of a value in the server's memory, more than a column's


def statement_values(code: int, body: bytes) -> dict[str, str]:
    """Decodes the event into options of the next statement.

    Args:
        code: INTVAR, RAND or USER_VAR.
        body: the event without its header.

    Raises:
        CorruptBinlog: a length or a value is impossible.
        Unsupported: a type or a collation is not known.
    """
    event = Fields(body)
    if code == INTVAR:
        kind = event.number(1)
        if kind not in INTEGERS:
            raise CorruptBinlog("an integer for a statement has an unknown meaning", meaning=kind)
        found = {INTEGERS[kind]: str(event.number(8))}
    elif code == RAND:
        found = {replay.RAND_SEED1: str(event.number(8)), replay.RAND_SEED2: str(event.number(8))}
    else:
        found = {replay.VARIABLE + event.text(4).decode(errors="replace"): _expression(event)}
    if event.left:
        raise CorruptBinlog("a value for a statement is longer than its fields", bytes_left=event.left)
    return found


def _expression(event: Fields) -> str:
    """A user variable: whether it is NULL; type, collation, length, value; flags, since 5.5.25."""
    if event.number(1):
        event.rest()
        return "NULL"
    kind, collation = event.number(1), event.number(4)
    value = Fields(event.text(4))
    unsigned = bool(event.rest()[:1] == bytes([UNSIGNED]))
    if kind == STRING:
        content = value.rest().hex()
        literal = f"0x{content}" if content else "''"
        charset, name = charset_of(collation), collation_name(collation)
        return f"_{charset} {literal}" + (f" COLLATE {name}" if name != BINARY else "")
    if kind == REAL:
        (real,) = struct.unpack("<d", value.take(8))
        if not math.isfinite(real):
            raise CorruptBinlog("a user variable is not a finite number", value=real)
        shown = f"{real!r}" if "e" in f"{real!r}" else f"{real!r}e0"
    elif kind == INTEGER:
        number = value.number(8)
        signed = number - (1 << 64) if number >> 63 else number
        shown = f"CAST({number} AS UNSIGNED)" if unsigned else str(signed)
    elif kind == DECIMAL:
        shown = _decimal(value)
    else:
        raise Unsupported("a user variable has an unknown type", type=kind)
    if value.left:
        raise CorruptBinlog("a user variable is longer than its type", type=kind, bytes_left=value.left)
    return shown


def _decimal(value: Fields) -> str:
    """A decimal: precision, scale, then as in a row: groups of nine digits in four bytes, the sign in the first bit."""
    precision, scale = value.number(1), value.number(1)
    if not 0 < precision <= MOST_DIGITS or scale > precision:
        raise CorruptBinlog("a user variable is an impossible DECIMAL", precision=precision, scale=scale)
    first, last = (precision - scale) % GROUP, scale % GROUP
    groups = [first, *[GROUP] * ((precision - scale) // GROUP), *[GROUP] * (scale // GROUP), last]
    image = bytearray(value.take(sum(BYTES_OF_DIGITS[digits] for digits in groups)))
    negative = not image[0] & 0x80
    image[0] ^= 0x80
    fields = Fields(bytes(byte ^ 0xFF for byte in image) if negative else bytes(image))
    digits = ""
    for size in groups:
        group = str(int.from_bytes(fields.take(BYTES_OF_DIGITS[size]), "big")).zfill(size) if size else ""
        if len(group) != size:
            raise CorruptBinlog("a group of a decimal has too many digits", group=group)
        digits += group
    whole = digits[: precision - scale].lstrip("0") or "0"
    return f"{'-' if negative else ''}{whole}.{digits[precision - scale :]}"
