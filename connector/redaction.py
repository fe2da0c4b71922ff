"""Takes secrets out of texts that leave the process: errors, log lines, what `thl config` prints.

What the configuration holds as a secret is remembered when it is read, also where it is then refused; every text goes
through `redacted`. Texts of others quote what they were given: libpq its URL, Java its JAAS line, YAML its excerpt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus, unquote

HIDDEN: Final = "**********"
LEAST: Final = 5  # characters: what is shorter stands in ordinary words, and to hide it everywhere would tell it
_WHOLE: Final = 12  # what is shorter is hidden where it stands as a word

_NAME: Final = (
    r"passw(?:or)?d|passphrase|secret|token|credential|jaas|key\.pem|user\.info|(?:access|account|api|hash)[._-]?key"
)
_SECRET_NAME: Final = re.compile(_NAME, re.IGNORECASE)
# Spark's own words for what it hides in its event log and on its pages.
SPARK_NAMES: Final = f"(?i){_NAME}".replace("(?:", "(")
_IN_ADDRESS: Final = re.compile(r"(://[^\s:/@\[]*:)(?!password@)[^\s/]+@")
_ADDRESS: Final = re.compile(r"://[^:/@]*:(.*)@", re.DOTALL)
_ASSIGNED: Final = re.compile(
    rf"[\w.-]*(?:{_NAME})[\w.-]*\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s\"';&,]+))", re.IGNORECASE
)

# Of the process: whatever it says goes through one place, which must know what every part of it was given.
_known: set[str] = set()
_pattern: re.Pattern[str] | None = None


def is_secret(name: str) -> bool:
    """Whether a property's name says that its value is nobody's business."""
    return _SECRET_NAME.search(name) is not None and not name.lower().endswith("_file")


def secrets_of(name: str, value: str) -> Iterator[str]:
    """What of a property's value is a secret: all of it, by its name, and passwords within it."""
    if is_secret(name):
        yield value
        if name.lower().endswith("user.info"):
            yield value.partition(":")[2]
    for found in _ADDRESS.findall(value):
        yield found
        yield unquote(found)
        # What a server, or a parser, takes for the password where it was not encoded.
        yield from re.split(r"[@/?#]", found)
    for groups in _ASSIGNED.findall(value):
        yield from groups


def remember(secrets: Iterable[str]) -> None:
    """Hide these from now on."""
    global _pattern  # noqa: PLW0603 (see above)
    new = {form for secret in secrets if len(secret) >= LEAST for form in _forms(secret)} - _known
    if new:
        _known.update(new)
        words = sorted(_known, key=len, reverse=True)
        _pattern = re.compile("|".join(_one(word) for word in words))


def forget() -> None:
    """Begin without any: for tests, which have many configurations in a process."""
    global _pattern  # noqa: PLW0603
    _known.clear()
    _pattern = None


def redacted(text: str) -> str:
    """The text without what is known to be secret, and without passwords in addresses."""
    if "://" in text:
        text = _IN_ADDRESS.sub(rf"\g<1>{HIDDEN}@", text)
    return _pattern.sub(HIDDEN, text) if _pattern else text


def _forms(secret: str) -> set[str]:
    """How it is written in addresses, in JSON, in Python's and in our own errors."""
    return {
        secret,
        quote(secret, safe=""),
        quote(secret),
        quote_plus(secret),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        secret.encode("unicode_escape").decode("ascii"),
    }


def _one(word: str) -> str:
    return re.escape(word) if len(word) >= _WHOLE else rf"(?<!\w){re.escape(word)}(?!\w)"
