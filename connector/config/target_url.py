"""Checks and reads `target.url`: the kind of target by its scheme, the file of SQLite or DuckDB, MySQL's address.

Only what the scheme decides is read here: libpq reads the rest of a PostgreSQL URL, whose password may have characters
that Python's parser of URLs refuses.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import AfterValidator, SecretStr

from connector.addresses import on_this_machine
from connector.errors import ConfigError
from connector.mysql_tls import TlsFileError, TlsVerify, tls_context

Kind = Literal["sqlite", "postgres", "mysql", "duckdb"]

FORMS: Final = (
    "sqlite:///file, duckdb:///file, postgresql://user:password@host:port/database or mysql://user:password@host:port"
)
"""The forms of `target.url`."""

_KINDS: Final[dict[str, Kind]] = {
    "sqlite": "sqlite",
    "postgresql": "postgres",
    "postgres": "postgres",
    "mysql": "mysql",
    "mariadb": "mysql",
    "duckdb": "duckdb",
}
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
            hint=FORMS,
        )
    return _KINDS[scheme]


def missing_driver(kind: Kind) -> ConfigError:
    """The error for a target whose driver, an optional package, is not installed."""
    return ConfigError.of_fields(
        f"target.url needs the package {kind}, which is not installed",
        {"target.url": None},
        hint=f"pip install 'thl-connector[{kind}]'",
    )


def sqlite_file(url: str) -> Path:
    """The file that a URL of SQLite names.

    Raises:
        ConfigError: it names no file.
    """
    return _file(url, "sqlite")


def duckdb_file(url: str) -> Path:
    """The file that a URL of DuckDB names.

    Raises:
        ConfigError: it names no file.
    """
    return _file(url, "duckdb")


def check_writable(file: Path) -> None:
    """Check that a target's file, or the folder in which it will be created, can be written to.

    Raises:
        ConfigError: it cannot.
    """
    folder = file.absolute().parent
    if not os.access(file if file.exists() else folder, os.W_OK):
        raise ConfigError(
            f"target.url: {file} cannot be written to"
            if file.exists()
            else f"target.url: {folder} is not a writable folder",
            hint="name another file in target.url, or create the folder and let this user write to it",
        )


def address_of(url: str) -> str:
    """Return the kind and the place that a target's URL names, without user, password and parameters."""
    kind = target_kind(url)
    if kind == "sqlite":
        return f"sqlite {sqlite_file(url)}"
    if kind == "duckdb":
        return f"duckdb {duckdb_file(url)}"
    try:
        parts = urlsplit(url)
        hosts, path = parts.netloc.rpartition("@")[2], unquote(parts.path)
    except ValueError:  # the driver names what is wrong, when it is asked to connect
        return kind
    return f"{kind} {hosts}{path if path != '/' else ''}"


def _file(url: str, scheme: str) -> Path:
    try:
        parts = urlsplit(url)
        path = "" if parts.netloc else unquote(parts.path[1:])
    except ValueError:  # a bracket where a host would be
        path = ""
    if not path:
        raise ConfigError.of_fields(
            "target.url names no file",
            {"target.url": None},
            hint=f"{scheme}:///relative/file or {scheme}:////absolute/file",
        )
    return Path(path)


TlsMode = Literal["preferred", "disabled", "required", "verify_ca", "verify_identity"]
_TLS_MODES: Final = ("preferred", "disabled", "required", "verify_ca", "verify_identity")
_VERIFIES: Final[dict[TlsMode, TlsVerify]] = {"verify_ca": "ca", "verify_identity": "identity"}
_FILES: Final = ("ssl_ca", "ssl_cert", "ssl_key")
_MYSQL_PORT: Final = 3306


@dataclass(frozen=True, slots=True)
class MySqlAddress:
    """The parts of a URL of MySQL: `mysql://user:password@host:port/?ssl_mode=…&ssl_ca=…&ssl_cert=…&ssl_key=…`.

    Args:
        tls: `ssl_mode`, as MySQL's clients have it; on this machine `disabled` is the default, else `preferred`.
        authority: `ssl_ca`: a file with the authority that signed the server's certificate; None: the system's.
        certificate: `ssl_cert`: a file with the client's certificate, for users with REQUIRE X509.
        key: `ssl_key`: a file with its private key; None: it is in the same file.
    """

    host: str
    port: int
    user: str
    password: str
    tls: TlsMode
    authority: str | None
    certificate: str | None = None
    key: str | None = None


def mysql_address(url: str) -> MySqlAddress:
    """Read a URL of MySQL or MariaDB.

    Raises:
        ConfigError: it is malformed. The message has nothing of it, which may be a part of the password.
    """
    try:
        parts = urlsplit(url)
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        port = parts.port or _MYSQL_PORT
        host = unquote(parts.hostname or "")
    except ValueError:
        raise _malformed(
            "is not a URL of MySQL: percent-encode what is no letter or digit in user and password"
        ) from None
    if not host or not parts.username:
        raise _malformed("names no host, or no user")
    if parts.path.strip("/"):
        raise _malformed("names a database: the tables of each database of the source get into one of its name")
    tls = given.pop("ssl_mode", "disabled" if on_this_machine(host) else "preferred").lower()
    authority, certificate, key = (given.pop(name, None) for name in _FILES)
    if given:
        raise _malformed(f"has another parameter than ssl_mode, {', '.join(_FILES)}")
    if key is not None and certificate is None:
        raise _malformed("has an ssl_key without ssl_cert")
    if certificate is not None and tls == "disabled":
        raise _malformed("has an ssl_cert, which is not used with ssl_mode=disabled, the default on this machine")
    if tls not in _TLS_MODES:
        raise _malformed(f"has an unknown ssl_mode: it is one of {', '.join(_TLS_MODES)}")
    user, password = unquote(parts.username), unquote(parts.password or "")
    return MySqlAddress(host, port, user, password, cast(TlsMode, tls), authority, certificate, key)


def tls_attempts(address: MySqlAddress) -> list[ssl.SSLContext | None]:
    """The ways to connect to a MySQL or MariaDB, in the order in which they are tried; None: without TLS.

    The next one is tried if the server offers no TLS, which it says before anything secret is sent.

    Raises:
        ConfigError: a file is missing or is not what it should be.
    """
    if address.tls == "disabled":
        return [None]
    verify = _VERIFIES.get(address.tls, "none")
    with _reading():
        context = tls_context(verify, address.authority, address.certificate, address.key)
    return [context, None] if address.tls == "preferred" else [context]


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except TlsFileError as error:
        parameter = "ssl_ca" if error.authority else "ssl_cert and ssl_key"
        raise ConfigError.of_fields(
            f"a file for TLS cannot be used: {error}",
            {"target.url": None},
            hint=f"{parameter} of target.url: PEM, a key without a password",
        ) from error


def _malformed(what: str) -> ConfigError:
    return ConfigError.of_fields(
        f"target.url {what}", {"target.url": None}, hint="mysql://user:password@host:port/?ssl_mode=verify_identity"
    )
