"""Takes secrets out of texts that leave the process: errors, log lines, what `thl config` prints.

What the configuration holds as a secret is remembered when it is read, also where it is then refused; every text goes
through `redacted`. Texts of others quote what they were given: libpq its URL, Java its JAAS line, YAML its excerpt.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus, unquote

HIDDEN: Final = "**********"
LEAST: Final = 5  # characters: what is shorter stands in ordinary words, and to hide it everywhere would tell it
_WHOLE: Final = 12  # what is shorter is hidden where it stands as a word

_NAME: Final = (
    r"passw(?:or)?d|passphrase|secret|token|credential|jaas|key\.pem|user\.info|\.sas\.|"
    r"(?:access|account|api|hash)[._-]?key"
)
_SECRET_NAME: Final = re.compile(_NAME, re.IGNORECASE)
# Spark's own words for what it hides in its event log and on its pages.
SPARK_NAMES: Final = f"(?i){_NAME}".replace("(?:", "(")
_IN_ADDRESS: Final = re.compile(r"(://[^\s:/@\[]*:)(?!password@)[^\s/]+@")
_ADDRESS: Final = re.compile(r"://([^:/@]*):")
# Without a way back, and each from a name's first character: a text may be long, and be made to take long.
_NAMED: Final = re.compile(r"(?<![\w.-])([\w.-]++)\s*+=\s*+")
_VALUE: Final = re.compile(r"\"((?:[^\"\\]|\\.)*+)\"|'([^']*+)'|([^\s\"';&,]++)", re.DOTALL)

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
            yield _basic(value)
    address, end = _ADDRESS.search(value), value.rfind("@")
    if address and address.end() <= end:
        found = value[address.end() : end]
        yield found
        yield unquote(found)
        yield _basic(unquote(f"{address[1]}:{found}"))
        # What a server, or a parser, takes for the password where it was not encoded.
        yield from re.split(r"[@/?#]", found)
    for found in _assigned(value):
        yield found
        yield unquote(found)
        yield re.sub(r"\\(.)", r"\1", found)  # as Java reads a JAAS line


def remember(secrets: Iterable[str]) -> None:
    """Hide these from now on."""
    global _pattern  # noqa: PLW0603 (see above)
    new = {
        form for secret in secrets for part in _parts(secret) if len(part) >= LEAST for form in _forms(part)
    } - _known
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


def _assigned(text: str) -> Iterator[str]:
    """Values of secret names within a text: `password=…`, quoted or not."""
    at = 0
    while named := _NAMED.search(text, at):
        at = named.end()
        if _SECRET_NAME.search(named[1]) and (value := _VALUE.match(text, at)):
            at = value.end()
            yield next(group for group in value.groups() if group is not None)


def _basic(user_and_password: str) -> str:
    """As the header of a request has them."""
    return b64encode(user_and_password.encode(errors="surrogatepass")).decode("ascii")


def _parts(secret: str) -> Iterator[str]:
    """It, and its lines where it has several, as a key has: who quotes a text quotes one line of it."""
    yield secret
    lines = [line.strip() for line in secret.splitlines()]
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= _WHOLE and not line.startswith("-----"))


def _forms(secret: str) -> set[str]:
    """How it is written in addresses, in JSON, in Python's and in our own errors."""
    encoded = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    return {
        *encoded,
        *(re.sub("%[0-9A-F]{2}", lambda one: one[0].lower(), form) for form in encoded),
        repr(secret.encode())[2:-1],
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        secret.encode("unicode_escape").decode("ascii"),
    }


def _one(word: str) -> str:
    return re.escape(word) if len(word) >= _WHOLE else rf"(?<!\w){re.escape(word)}(?!\w)"
