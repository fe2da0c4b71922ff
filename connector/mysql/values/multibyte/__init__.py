"""Tables of the multi-byte character sets gbk, gb18030, gb2312, big5, sjis, cp932, ujis, eucjpms and euckr.

The tables are recorded from a MySQL server: `tests/support/make_charsets.py` asks it for every character and writes one
file for each set. Other software's codecs differ, Python's too. A table is unpacked on first use.

A table is an array of code points of 16 bits, 0 where there is none: 128 for the bytes from 0x80 on; 128 × 256 for two
bytes, by the first one's lower seven bits and the second; then, in sets of three bytes, as many for the two that
follow 0x8F; in gb18030 those of four bytes up to U+FFFF, in order. Those beyond U+FFFF follow each other, from
U+10000 on, and need no table. Below 0x80 every set is ASCII.

In its file the lower bytes of all entries stand before the upper ones, compressed by zlib.
"""

from __future__ import annotations

import zlib
from array import array
from functools import cache
from importlib.resources import files
from sys import byteorder
from typing import Final

# The most bytes of a character: what MySQL calls mbmaxlen.
LONGEST: Final = {
    "big5": 2,
    "cp932": 2,
    "eucjpms": 3,
    "euckr": 2,
    "gb18030": 4,
    "gb2312": 2,
    "gbk": 2,
    "sjis": 2,
    "ujis": 3,
}
SINGLE: Final = 128
DOUBLE: Final = 128 * 256
FOUR: Final = 39420  # characters of four bytes up to U+FFFF
ENTRIES: Final = {2: SINGLE + DOUBLE, 3: SINGLE + 2 * DOUBLE, 4: SINGLE + DOUBLE + FOUR}


@cache
def codes(charset: str) -> bytes:
    """The table of a set for `text.pyx`."""
    return unpacked(files(__name__).joinpath(f"{charset}.bin").read_bytes(), ENTRIES[LONGEST[charset]])


def unpacked(packed: bytes, entries: int) -> bytes:
    """The array in a file."""
    raw = zlib.decompress(packed)
    if len(raw) != 2 * entries:
        raise ValueError(f"a table of {len(raw) // 2} characters instead of {entries}")
    little = bytearray(2 * entries)
    little[::2], little[1::2] = raw[:entries], raw[entries:]
    found = array("H", bytes(little))
    if byteorder == "big":
        found.byteswap()
    return found.tobytes()
