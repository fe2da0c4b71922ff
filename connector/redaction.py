"""Removes secrets from texts that leave the process: errors, log lines, the output of `thl config`.

Secrets of the configuration are remembered when it is read, even if it is then refused; every text goes through
`redacted`. Messages of libraries quote their input: libpq its URL, Java its JAAS line, YAML its excerpt.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote, quote_plus, unquote

HIDDEN: Final = "**********"
LEAST: Final = 5  # characters: a shorter secret is part of ordinary words; hiding it everywhere would reveal it
_WHOLE: Final = 12  # characters: a shorter secret is hidden only as a whole word
# A word also begins after an escape, as Python, JSON or a URL writes a character: its last one may be a letter.
_ESCAPES: Final = (
    r"\\[abfnrtv]",
    r"\\x[0-9a-f]{2}",
    r"\\u[0-9a-f]{4}",
    r"\\U[0-9a-f]{8}",
    r"\\[0-7]{3}",
    "%[0-9A-Fa-f]{2}",
)
_WORD_BEGINS: Final = f"(?:(?<!\\w)|{'|'.join(f'(?<={escape})' for escape in _ESCAPES)})"

_NAME: Final = (
    r"passw(?:or)?d|passphrase|secret|token|credential|jaas|key\.pem|user\.info|\.sas\.|"
    r"(?:access|account|api|hash|private)[._-]?key|keystore\.key|encryption[._-]?key\b"
)
_SECRET_NAME: Final = re.compile(_NAME, re.IGNORECASE)
_PRIVATE_KEY: Final = "PRIVATE KEY-----"  # in the first line of every form of PEM, whatever the property's name
# Pattern of the properties that Spark hides in its event log and on its pages, by their names or values.
SPARK_NAMES: Final = f"(?i){_NAME}|{_PRIVATE_KEY}".replace("(?:", "(")
_IN_ADDRESS: Final = re.compile(r"(://[^\s:/@\[]*:)(?!password@)[^\s/]+@")
_ADDRESS: Final = re.compile(r"://([^:/@]*):")
# Possessive and anchored at a name's first character: linear time on any text, also on one made to take long.
_NAMED: Final = re.compile(r"(?<![\w.-])([\w.-]++)\s*+=\s*+")
_VALUE: Final = re.compile(r"\"((?:[^\"\\]|\\.)*+)\"|'([^']*+)'|([^\s\"';&,]++)", re.DOTALL)

# One set for the process: all its texts go through `redacted`, which must know the secrets of every part.
_known: set[str] = set()
_pattern: re.Pattern[str] | None = None


def is_secret(name: str) -> bool:
    """Return True if a property's name marks its value as a secret."""
    return _SECRET_NAME.search(name) is not None and not name.lower().endswith(("_file", ".file"))


def secrets_of(name: str, value: str) -> Iterator[str]:
    """Return the secrets of a property: its whole value if its name says so or it is a key, and passwords within it."""
    if is_secret(name) or _PRIVATE_KEY in value:
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
        # The parts that a server or parser may take for the password if it was not percent-encoded.
        yield from re.split(r"[@/?#]", found)
    for found in _assigned(value):
        yield found
        yield unquote(found)
        yield re.sub(r"\\(.)", r"\1", found)  # as Java reads a JAAS line


def remember(secrets: Iterable[str]) -> None:
    """Hide these secrets in every text from now on."""
    global _pattern  # noqa: PLW0603 (one set for the process)
    new = {
        form for secret in secrets for part in _parts(secret) if len(part) >= LEAST for form in _forms(part)
    } - _known
    if new:
        _known.update(new)
        words = sorted(_known, key=len, reverse=True)
        _pattern = re.compile("|".join(_pattern_of(word) for word in words))


def forget() -> None:
    """Forget all secrets: for tests, which load many configurations in one process."""
    global _pattern  # noqa: PLW0603
    _known.clear()
    _pattern = None


def redacted(text: str) -> str:
    """Return the text without known secrets and without passwords in URLs."""
    if "://" in text:
        text = _IN_ADDRESS.sub(rf"\g<1>{HIDDEN}@", text)
    return _pattern.sub(HIDDEN, text) if _pattern else text


def without_secrets(value: object) -> object:
    """Return what JSON is made of, its texts redacted; not its numbers and names, where that would be damage."""
    match value:
        case str():
            return redacted(value)
        case Mapping():
            return {name: without_secrets(one) for name, one in value.items()}
        case list() | tuple():
            return [without_secrets(one) for one in value]
        case _:
            return value


def _assigned(text: str) -> Iterator[str]:
    """Return the values of secret names in a text: `password=…`, quoted or not."""
    at = 0
    while named := _NAMED.search(text, at):
        at = named.end()
        if _SECRET_NAME.search(named[1]) and (value := _VALUE.match(text, at)):
            at = value.end()
            yield next(group for group in value.groups() if group is not None)


def _basic(user_and_password: str) -> str:
    """Return user and password as an HTTP header has them."""
    return b64encode(user_and_password.encode(errors="surrogatepass")).decode("ascii")


def _parts(secret: str) -> Iterator[str]:
    """Return the secret and, if it has several, its lines: a message may quote one line of a key.

    Java takes a key's lines with blanks between them, and in files of properties as `\\n`.
    """
    yield secret
    lines = [line.strip() for line in secret.splitlines()]
    if _PRIVATE_KEY in secret:
        lines = re.split(r"-----[A-Z ]*-----|\\n|\s", secret)
    if len(lines) > 1:
        yield from (line for line in lines if len(line) >= _WHOLE and not line.startswith("-----"))


def _forms(secret: str) -> set[str]:
    """Return the secret as URLs, JSON, Python and error messages write it."""
    raw = secret.encode(errors="surrogatepass")
    encoded = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    return {
        *encoded,
        *(re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form) for form in encoded),
        repr(raw)[2:-1],
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        secret.encode("unicode_escape", "surrogatepass").decode("ascii"),
    }


def _pattern_of(word: str) -> str:
    return re.escape(word) if len(word) >= _WHOLE else rf"{_WORD_BEGINS}{re.escape(word)}(?!\w)"
