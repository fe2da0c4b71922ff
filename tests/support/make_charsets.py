"""Asks a MySQL server for every character of the multi-byte sets; writes `mysql/values/multibyte/*.bin`.

    python -m tests.support.make_charsets      starts a server of the sandbox, writes tables and facts

A character is what the server takes as one of the set (`CONVERT(x'…' USING gbk)` gives it back whole, of length 1) and
turns into something else than its "?", which stands for characters without a meaning. What it gives for the way back
is only counted: several characters of a set can be one of Unicode's. `tests/testdata/charsets.json` holds for each set
how many characters there are and a digest of all of them.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import zlib
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from connector.mysql.values.multibyte import DOUBLE, ENTRIES, FOUR, LONGEST, SINGLE, unpacked
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer, mysql_for_tests

TABLES = Path("connector/mysql/values/multibyte")
FACTS = Path("tests/testdata/charsets.json")
SUPPLEMENTARY = 189000  # in gb18030, the number of the character of four bytes that is U+10000
NUMBERS = "(WITH RECURSIVE d (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM d WHERE n < {}) SELECT n FROM d) d"
Pairs = Mapping[bytes, str]


def lenient(server: SqlServer) -> Any:
    """A session in which invalid text is cut with a warning, not refused."""
    return connect(server, init_command="SET sql_mode = '', cte_max_recursion_depth = 100000")


def candidates(charset: str) -> Iterator[str]:
    """SQL for byte strings `b` of up to three bytes, some of which are characters; a statement per length."""
    yield f"SELECT CHAR(n) AS b FROM {NUMBERS.format(255)}"
    yield f"SELECT {two_bytes('')} AS b FROM {NUMBERS.format(65535)}"
    if LONGEST[charset] == 3:
        yield f"SELECT {two_bytes('8F')} AS b FROM {NUMBERS.format(65535)}"


def candidates_of_four() -> Iterator[str]:
    """SQL for gb18030's candidates of four bytes."""
    last = "n >> 8 BETWEEN 0x81 AND 0xFE AND n & 255 BETWEEN 0x30 AND 0x39"
    for first in range(0x81, 0xFF):
        for second in range(0x30, 0x3A):
            yield f"SELECT {two_bytes(f'{first:02X}{second:02X}')} AS b FROM {NUMBERS.format(65535)} WHERE {last}"


def two_bytes(before: str) -> str:
    """SQL for the two bytes of a number, after others."""
    return f"UNHEX(CONCAT('{before}', LPAD(HEX(n), 4, '0')))"


def with_meaning(charset: str, sql: str) -> str:
    """SQL for the candidates that are characters: as bytes `b`, as text `c` and in UTF-32 as `u`."""
    return (
        f"SELECT b, c, u FROM (SELECT b, c, CONVERT(c USING utf32) AS u FROM"
        f" (SELECT b, CONVERT(b USING {charset}) AS c FROM ({sql}) raw) text"
        " WHERE CHAR_LENGTH(c) = 1 AND CAST(c AS BINARY) = b) known"
        " WHERE LENGTH(u) = 4 AND (HEX(u) <> '0000003F' OR HEX(b) = '3F')"
    )


def characters(cursor: Any, charset: str) -> tuple[dict[bytes, str], int]:
    """Every character of a set with its code point, and the number of those that do not convert back."""
    found: dict[bytes, str] = {}
    others = 0
    for sql in [*candidates(charset), *(candidates_of_four() if LONGEST[charset] == 4 else ())]:
        known = with_meaning(charset, sql)
        cursor.execute(f"SELECT HEX(b), HEX(u), HEX(CONVERT(u USING {charset})) FROM ({known}) found")
        for own, meaning, back in cursor.fetchall():
            found[bytes.fromhex(own)] = bytes.fromhex(meaning).decode("utf-32-be")
            others += back != own
    return found, others


def number(char: bytes) -> int:
    """The number of a gb18030 character of four bytes."""
    return ((char[0] - 0x81) * 10 + char[1] - 0x30) * 1260 + (char[2] - 0x81) * 10 + char[3] - 0x30


def four_bytes(number: int) -> bytes:
    """The gb18030 character of a number."""
    number, last = divmod(number, 10)
    number, third = divmod(number, 126)
    first, second = divmod(number, 10)
    return bytes([0x81 + first, 0x30 + second, 0x81 + third, 0x30 + last])


def place(char: bytes) -> int:
    """The index of a character in the table of its set."""
    lower = char[0] & 0x7F
    if len(char) == 1:
        return lower
    if len(char) == 2:
        return SINGLE + lower * 256 + char[1]
    return SINGLE + DOUBLE + (number(char) if len(char) == 4 else (char[1] & 0x7F) * 256 + char[2])


def table(charset: str, pairs: Pairs) -> array[int]:
    """The array that `connector.mysql.values.multibyte` describes.

    Raises:
        ValueError: the set is not as is described there.
    """
    made = array("H", bytes(2 * ENTRIES[LONGEST[charset]]))
    leads: dict[int, set[int]] = {1: set(), 2: set(), 3: set(), 4: set()}
    for raw, char in pairs.items():
        if raw[0] < 0x80:
            right = raw == char.encode()
        elif len(raw) == 4 and number(raw) >= FOUR:
            right = ord(char) == 0x10000 + number(raw) - SUPPLEMENTARY
        else:
            right = ord(char) <= 0xFFFF and (len(raw) != 3 or (raw[0] == 0x8F and raw[1] >= 0x80))
            made[place(raw)] = ord(char)
            leads[len(raw)].add(raw[0])
        if not right or (len(raw) == 2 and LONGEST[charset] == 4 and 0x30 <= raw[1] <= 0x39):
            raise ValueError(f"{charset}: {raw.hex()} is {char!r}")
    if leads[1] & (leads[2] | leads[3] | leads[4]) or leads[2] & leads[3]:
        raise ValueError(f"{charset}: a first byte does not tell how many there are")
    return made


def packed(made: array[int]) -> bytes:
    """The bytes of a table's file."""
    return zlib.compress(bytes(code & 0xFF for code in made) + bytes(code >> 8 for code in made), 9)


def digest(pairs: Pairs) -> str:
    """A digest of all characters and code points, in the order of their bytes."""
    lines = "".join(f"{raw.hex()} {ord(char):x}\n" for raw, char in sorted(pairs.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def make(server: SqlServer) -> None:
    """Writes tables and facts."""
    connection = lenient(server)
    cursor = connection.cursor()
    cursor.execute("SELECT VERSION()")
    facts: dict[str, Any] = {"server": f"MySQL {cursor.fetchone()[0]}", "sets": {}}
    for charset in sorted(LONGEST):
        pairs, others = characters(cursor, charset)
        made = table(charset, pairs)
        data = packed(made)
        if unpacked(data, len(made)) != made.tobytes():
            raise ValueError(f"{charset}: packing lost something")
        (TABLES / f"{charset}.bin").write_bytes(data)
        facts["sets"][charset] = {"characters": len(pairs), "sha256": digest(pairs), "not_back": others}
        print(charset, len(pairs), others, len(data), flush=True)
    FACTS.write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, mysql_for_tests(Path(folder)) as started:
        make(started)
