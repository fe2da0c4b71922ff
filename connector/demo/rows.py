"""Random rows for the shop, from a seed; they include the extreme values of each type."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta
from random import Random
from typing import Any, Final

_WORDS: Final = ("Wolke", "naïve", "Žluťoučký", "東京", "emoji 🦉", "tab\there", "back\\slash", "quo'te", "", "plain")
_DAWN: Final = datetime(2001, 1, 1)

Row = tuple[Any, ...]


def random_time(random: Random) -> datetime:
    """A time with microseconds, between 2001 and 2031."""
    return _DAWN + timedelta(microseconds=random.randrange(30 * 365 * 86_400_000_000))


def text(random: Random, words: int) -> str:
    """Some words in several scripts."""
    return " ".join(random.choice(_WORDS) for _ in range(words))


def document(random: Random) -> str:
    """A JSON document of a few levels."""
    return json.dumps(
        {
            "n": random.choice([0, -1, 2**31, 2**63 - 1, 18446744073709551615]),
            "x": random.choice([0.5, 1e20, -2.25e-7, 3.0]),
            "s": text(random, 2),
            "list": [random.randrange(100) for _ in range(random.randrange(4))],
            "deep": {"a": {"b": [None, True, False, ""]}},
        }
    )


def customer(random: Random, number: int) -> Row:
    """Values for customers' columns after `id`."""
    return (
        text(random, 2)[:80],
        random.choice([None, f"user{number}@exämple.test"]),
        random.choice(("de", "fr", "jp", "us")),
        random.choice((None, date(1950, 1, 1) + timedelta(days=random.randrange(20_000)), "1000-01-01")),
        random.randrange(2),
        random.choice(("bronze", "silver", "gold")),
        random.choice((None, "", "mail", "mail,phone,post")),
        f"{random.randrange(-(10**15), 10**15)}.{random.randrange(10_000):04d}",
        random_time(random),
        random.choice((None, random_time(random))),
        random.choice((None, text(random, 20))),
        random.choice((None, random.randbytes(random.randrange(200)))),
        random.choice((None, document(random))),
    )


def product(random: Random, number: int) -> Row:
    """Values for all of products' columns."""
    return (
        number,
        f"SKU{number:06d}",
        text(random, 4),
        f"{random.choice(('', '-'))}{random.randrange(10**34)}.{random.randrange(10**30):030d}",
        random.choice((None, random.random() * 1e5, 0.1, -1.5e-20)),
        random.choice((None, random.random() * 1e300, 1 / 3, -0.0)),
        random.randrange(2**24),
        random.choice((None, -128, 127, 0)),
        random.choice((None, 1901, 2155, 0)),
        random.choice((None, "-838:59:59.00", "838:59:59.00", "00:00:00.01", "-00:00:01.50")),
        random.choice((None, random.randrange(2**17))),
        random.choice((None, random.randbytes(2000))),
        random.choice((None, text(random, 300))),
        random.choice((None, document(random))),
    )


def click(random: Random) -> Row:
    """Values for clicks; few distinct ones, so that equal rows occur."""
    return (
        _DAWN + timedelta(seconds=random.randrange(500)),
        f"v{random.randrange(50):07d}",
        f"/p/{random.randrange(20)}",
        random.choice((None, random.randrange(65_536), 1, 2)),
        random.choice((None, b"", b"\x00\xff")),
    )
