"""Checks and reads `target.url`: the kind of target by its scheme, and the file of a SQLite target.

Only what the scheme decides is read here: libpq reads the rest of a PostgreSQL URL, whose password may have characters
that Python's parser of URLs refuses.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, SecretStr

from connector.errors import ConfigError

Kind = Literal["sqlite", "postgres"]

_KINDS: Final[dict[str, Kind]] = {"sqlite": "sqlite", "postgresql": "postgres", "postgres": "postgres"}
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_POSTGRES_URL: Final = re.compile(
    r"postgres(?:ql)?://(?:(?:[^\s@/?#%]|%[0-9A-Fa-f]{2})*@)?"  # user and password, encoded
    r"(?:(?:[\w.-]|%[0-9A-Fa-f]{2})*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?"
    r"(?:,(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?)*(?:/[^?\s]*)?(?:\?\S*)?"
)


def _percent_encoded(url: SecretStr) -> SecretStr:
    text = url.get_secret_value()
    if text.startswith(("postgresql:", "postgres:")) and not _POSTGRES_URL.fullmatch(text):
        raise ValueError(
            "not postgresql://user:password@host:port/database: percent-encode every character of user and password "
            "that is not a letter or digit: %40 for @, %2F for /, %25 for %"
        )
    return url


TargetUrl = Annotated[SecretStr, AfterValidator(_percent_encoded)]


def target_kind(url: str) -> Kind:
    """The kind of target that a URL names; each is a folder of `connector.targets`.

    Raises:
        ConfigError: the URL has an unknown scheme, or none.
    """
    found = _SCHEME.match(url)
    scheme = found[1].lower() if found else ""
    if scheme not in _KINDS:
        raise ConfigError.of_fields(
            f"target.url has scheme {scheme or 'none'!r}",
            {"target.url": None},
            hint="sqlite:///file or postgresql://user:password@host:port/database",
        )
    return _KINDS[scheme]


def sqlite_file(url: str) -> Path:
    """The file that a URL of SQLite names.

    Raises:
        ConfigError: it names no file.
    """
    try:
        parts = urlsplit(url)
        path = "" if parts.netloc else unquote(parts.path[1:])
    except ValueError:  # a bracket where a host would be
        path = ""
    if not path:
        raise ConfigError.of_fields(
            "target.url names no file",
            {"target.url": None},
            hint="sqlite:///relative/file or sqlite:////absolute/file",
        )
    return Path(path)
