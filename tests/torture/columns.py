"""The columns of the torture table: random values of each type, and the common form of the three readers' values.

Without geometry and vectors, which mysqlbinlog cannot print (tests/integration/binlog/test_types.py has them).
"""

from __future__ import annotations

import base64
import json
import random
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Canon = object
Make = Callable[[random.Random], str]


@dataclass(frozen=True)
class Column:
    """One column.

    Args:
        sql: SQL type.
        make: a random value as SQL.
        said: SQL expression to select, with `v` for the column.
        of_select, of_ours, of_peer: common form of a value from a SELECT, from `thl binlog`'s JSON, from mysqlbinlog.
        near: mysqlbinlog prints six digits only.
    """

    sql: str
    make: Make
    said: str
    of_select: Callable[[Any], Canon]
    of_ours: Callable[[Any], Canon]
    of_peer: Callable[[bytes], Canon]
    near: bool = False


def columns() -> list[Column]:
    """All columns."""
    found = [_integer(name, size, unsigned) for name, size in INTEGERS for unsigned in (False, True)]
    found += [
        _decimal(digits, scale) for digits, scale in ((1, 0), (9, 9), (10, 2), (18, 9), (38, 20), (65, 0), (65, 30))
    ]
    found += [_year(), _date()]
    for fraction in (0, 1, 3, 4, 6):
        found += [_time(fraction), _datetime(fraction), _timestamp(fraction)]
    found += [_float(), _double()]
    found += [_bit(size) for size in (1, 7, 8, 17, 64)]
    for sql, charset, alphabet, most in TEXTS:
        found.append(_text(sql, charset, alphabet, most))
    found += [_bytes(sql, most) for sql, most in (("varbinary(20)", 20), ("varbinary(600)", 600), ("blob", 900))]
    found += [_bytes("binary(16)", 16, pad=16), _bytes("longblob", 70_000, rarely=True)]
    found += [_enum(3), _enum(300), _set(3), _set(64), _json()]
    return found


INTEGERS = (("tinyint", 1), ("smallint", 2), ("mediumint", 3), ("int", 4), ("bigint", 8))
DECIMALS = ((1, 0), (9, 9), (10, 2), (18, 9), (38, 20), (65, 0), (65, 30))
LATIN = "abcXYZ 019,;.-\u00e9\u00fc\u00df\u20ac"
TEXTS = (
    ("char(12)", "utf8mb4", LATIN + "\U0001f600\u4e2d", 12),
    ("varchar(40)", "utf8mb4", LATIN + "\U0001f600\u4e2d", 40),
    ("varchar(300)", "utf8mb4", LATIN + "\U0001f600\u4e2d", 300),
    ("varchar(60) character set latin1", "cp1252", LATIN, 60),
    ("varchar(60) character set utf8mb3", "utf-8", LATIN + "\u4e2d", 60),
    ("varchar(60) character set ucs2", "utf-16-be", LATIN + "\u4e2d", 60),
    ("varchar(60) character set utf16", "utf-16-be", LATIN + "\U0001f600", 60),
    ("varchar(60) character set utf32", "utf-32-be", LATIN + "\U0001f600", 60),
    ("varchar(60) character set cp1251", "cp1251", "abc \u0434\u0436\u042f", 60),
    ("varchar(60) character set koi8r", "koi8-r", "abc \u0434\u0436\u042f", 60),
    ("varchar(60) character set gbk", "gbk", "abc \u4e2d\u6587", 60),
    ("varchar(60) character set sjis", "shift_jis", "abc \u65e5\u672c\u30a2", 60),
    ("varchar(60) character set euckr", "euc_kr", "abc \ud55c\uae00", 60),
    ("tinytext", "utf8mb4", LATIN, 60),
    ("text", "utf8mb4", LATIN + "\U0001f600\u4e2d", 600),
    ("mediumtext character set latin1", "cp1252", LATIN, 3000),
)


def _integer(name: str, size: int, unsigned: bool) -> Column:
    bits = 8 * size
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)

    def make(rng: random.Random) -> str:
        return str(rng.choice([low, high, 0, 1, rng.randint(low, high), rng.randint(low, high) >> rng.randrange(bits)]))

    def of_peer(text: bytes) -> int:
        """The value from mysqlbinlog, which does not know signs and prints both readings of a negative number."""
        number = int(text.split()[0])
        return number % 2**bits if unsigned else number

    return Column(f"{name}{' unsigned' if unsigned else ''}", make, "v", int, int, of_peer)


def _decimal(digits: int, scale: int) -> Column:
    def make(rng: random.Random) -> str:
        number = rng.choice(
            [0, 1, 10**digits - 1, rng.randrange(10**digits), rng.randrange(10 ** rng.randint(1, digits))]
        )
        return f"'{rng.choice(['', '-'])}{number // 10**scale}.{number % 10**scale:0{max(scale, 1)}}'"

    def number(text: str | bytes) -> tuple[Decimal, int]:
        value = Decimal(text.decode() if isinstance(text, bytes) else text)
        return abs(value) if value == 0 else value, -int(value.as_tuple().exponent)

    def of_peer(text: bytes) -> tuple[Decimal, int]:
        return number(text)

    return Column(f"decimal({digits},{scale})", make, "CAST(v AS CHAR)", number, number, of_peer)


def _year() -> Column:
    make = lambda rng: str(rng.choice([0, 1901, 2155, rng.randint(1901, 2155)]))  # noqa: E731
    return Column(
        "year", make, "v", int, int, lambda text: int(text) if text != b"1900" else 0
    )  # it adds 1900 to 0 too


def _date() -> Column:
    make = lambda rng: rng.choice(["'0000-00-00'", "'9999-12-31'", "'2024-02-29'", f"'{_day(rng)}'"])  # noqa: E731
    return Column("date", make, "CAST(v AS CHAR)", str, str, lambda text: _unquoted(text).decode().replace(":", "-"))


def _day(rng: random.Random) -> str:
    return f"{rng.randint(1000, 9999):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"


def _clock(rng: random.Random, hours: int, fraction: int) -> str:
    micros = f".{rng.randrange(10**fraction):0{fraction}}" if fraction else ""
    return f"{rng.randrange(hours):02}:{rng.randrange(60):02}:{rng.randrange(60):02}{micros}"


def _time(fraction: int) -> Column:
    def make(rng: random.Random) -> str:
        return f"'{rng.choice(['', '-'])}{_clock(rng, 838, fraction)}'"

    def peer(text: bytes) -> str:
        return _unquoted(text).decode()

    return Column(
        f"time({fraction})", make, "CAST(v AS CHAR)", _plain_zero, _plain_zero, lambda text: _plain_zero(peer(text))
    )


def _plain_zero(text: str) -> str:
    """Zero has no sign."""
    return text.lstrip("-") if not text.strip("-0:.") else text


def _datetime(fraction: int) -> Column:
    def make(rng: random.Random) -> str:
        return rng.choice(["'0000-00-00 00:00:00'", f"'{_day(rng)} {_clock(rng, 24, fraction)}'"])

    return Column(f"datetime({fraction})", make, "CAST(v AS CHAR)", str, str, lambda text: _unquoted(text).decode())


def _timestamp(fraction: int) -> Column:
    def make(rng: random.Random) -> str:
        day = f"{rng.randint(1971, 2037)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        return rng.choice(["0", f"'{day} {_clock(rng, 24, fraction)}'"])

    def of_text(text: str) -> Decimal:
        from datetime import UTC, datetime

        if text.startswith("0000"):
            return Decimal(0)
        whole, _, part = text.partition(".")
        seconds = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
        return Decimal(int(seconds)) + Decimal(f"0.{part or 0}")

    return Column(
        f"timestamp({fraction}) null", make, "CAST(v AS CHAR)", of_text, of_text, lambda text: Decimal(text.decode())
    )


def _float() -> Column:
    def single(value: float) -> float:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])

    make = lambda rng: repr(single(rng.choice([0.0, 1.1, -3.4e38, 1e-40, rng.uniform(-1e6, 1e6)])))  # noqa: E731
    return Column("float", make, "CAST(v AS DOUBLE)", single, single, float, near=True)


def _double() -> Column:
    make = lambda rng: repr(rng.choice([0.0, 0.1, -1.7976931348623157e308, rng.uniform(-1e9, 1e9)]))  # noqa: E731
    return Column("double", make, "v", float, float, float, near=True)


def _bit(size: int) -> Column:
    make = lambda rng: str(rng.choice([0, 2**size - 1, rng.randrange(2**size)]))  # noqa: E731
    ours = lambda value: int.from_bytes(base64.b64decode(value["base64"], validate=True), "big")  # noqa: E731
    return Column(f"bit({size})", make, "v + 0", int, ours, lambda text: int(text[2:-1], 2))


def _text(sql: str, charset: str, alphabet: str, most: int) -> Column:
    codec = "utf-8" if charset == "utf8mb4" else charset
    fixed = sql.startswith("char(")

    def make(rng: random.Random) -> str:
        text = "".join(rng.choices(alphabet, k=rng.choice([0, 1, most, rng.randint(0, most)])))
        return f"CONVERT(x'{text.encode().hex()}' USING utf8mb4)"

    def of_peer(text: bytes) -> str:
        return _unescaped(text).decode(codec)

    def of_select(shown: str) -> str:
        return bytes.fromhex(shown).decode()

    stripped = (lambda text: text.rstrip(" ")) if fixed else (lambda text: text)
    return Column(
        sql,
        make,
        "HEX(CONVERT(v USING utf8mb4))",
        lambda shown: stripped(of_select(shown)),
        stripped,
        lambda text: stripped(of_peer(text)),
    )


def _bytes(sql: str, most: int, *, pad: int = 0, rarely: bool = False) -> Column:
    def make(rng: random.Random) -> str:
        size = (
            rng.choice([0, 1, most, rng.randint(0, most)]) if not rarely or rng.random() < 0.02 else rng.randint(0, 99)
        )
        return f"x'{rng.randbytes(size).hex()}'"

    def padded(value: bytes) -> bytes:
        return value.ljust(pad, b"\0")

    ours = lambda value: base64.b64decode(value["base64"], validate=True)  # noqa: E731
    return Column(sql, make, "HEX(v)", bytes.fromhex, ours, lambda text: padded(_unescaped(text)))


def _enum(members: int) -> Column:
    labels = [f"m\u00e9{number}" for number in range(members)]
    make = lambda rng: f"'{rng.choice(labels)}'"  # noqa: E731
    quoted = ",".join(f"'{label}'" for label in labels)
    return Column(f"enum({quoted})", make, "v", str, str, lambda text: labels[int(text) - 1])


def _set(members: int) -> Column:
    labels = [f"s{number}" for number in range(members)]

    def make(rng: random.Random) -> str:
        return f"'{','.join(label for label in labels if rng.random() < 0.3)}'"

    def of_peer(text: bytes) -> str:
        # It prints the bytes in the order in which they are stored.
        bits = int.from_bytes(int(text[2:-1], 2).to_bytes((members + 7) // 8, "big"), "little")
        return ",".join(label for number, label in enumerate(labels) if bits >> number & 1)

    quoted = ",".join(f"'{label}'" for label in labels)
    return Column(f"set({quoted})", make, "v", str, str, of_peer)


def _json() -> Column:
    def value(rng: random.Random, depth: int = 0) -> Any:
        kind = rng.randrange(9 if depth < 3 else 7)
        if kind == 7:
            return [value(rng, depth + 1) for _ in range(rng.randrange(5))]
        if kind == 8:
            return {f"k{rng.randrange(99)}": value(rng, depth + 1) for _ in range(rng.randrange(5))}
        return [None, True, rng.randint(-(2**63), 2**63), 7, rng.uniform(-9, 9), "t\u00e9xt \u20ac", ""][kind]

    def make(rng: random.Random) -> str:
        document = {"n": rng.randrange(1000), "v": value(rng), "t": "x" * rng.choice([1, 1, 300])}
        return f"CAST(x'{json.dumps(document).encode().hex()}' AS CHAR CHARACTER SET utf8mb4)"

    def of_peer(text: bytes) -> str:
        return _unescaped(text).decode()

    return Column("json", make, "HEX(CAST(v AS CHAR))", lambda shown: bytes.fromhex(shown).decode(), str, of_peer)


def _unquoted(text: bytes) -> bytes:
    assert text[:1] == text[-1:] == b"'", text
    return text[1:-1]


def _unescaped(text: bytes) -> bytes:
    """Resolves mysqlbinlog's backslash escapes: a C escape letter, or xNN."""
    return _ESCAPE.sub(lambda found: _MEANING.get(found[1]) or bytes([int(found[1][1:], 16)]), _unquoted(text))


_ESCAPE = re.compile(rb"\\(x[0-9a-f]{2}|.)", re.DOTALL)
_MEANING = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"f": b"\f",
    b"b": b"\b",
    b"v": b"\v",
    b"a": b"\a",
    b"'": b"'",
    b"\\": b"\\",
}
