"""A target by its URL, and its desk."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from connector.clock import Clock
from connector.config import Target as Options
from connector.errors import ConfigError
from connector.thl.transaction_columns import transaction_columns
from connector.write import postgres_connection
from connector.write.desk import Desk
from connector.write.postgres import PostgresTarget
from connector.write.postgres_desk import PostgresSession
from connector.write.sqlite import SqliteTarget
from connector.write.sqlite_desk import SqliteSession
from connector.write.target import Target


def open_target(options: Options, clock: Clock) -> Target:
    """Open the target that the configuration names.

    Args:
        options: its URL, whether to audit, and the transaction's columns.
        clock: for the time of each commit.

    Raises:
        ConfigError: a URL of no known kind.
        TargetUnavailable: it does not answer.
    """
    place = _place(options)
    columns = transaction_columns(options.transaction_columns.items())
    if isinstance(place, Path):
        return SqliteTarget(place, clock, audit=options.audit, columns=columns)
    return PostgresTarget(place, clock, audit=options.audit, columns=columns)


def open_desk(options: Options) -> Desk:
    """Open the desk of the target that the configuration names: claims nothing.

    Args:
        options: its URL.

    Raises:
        ConfigError: a URL of no known kind.
        TargetUnavailable: it does not answer, or does not exist yet.
    """
    place = _place(options)
    return Desk(SqliteSession(place) if isinstance(place, Path) else PostgresSession(place))


def unverified(options: Options) -> str:
    """Why a password that is sent to the target can be read by others, as a sentence; "": it cannot.

    Raises:
        ConfigError: a URL of no known kind.
    """
    place = _place(options)
    return "" if isinstance(place, Path) else postgres_connection.unverified(place)


def _place(options: Options) -> Path | str:
    """A file of SQLite's, or a URL of PostgreSQL's."""
    url = options.url.get_secret_value()
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        # sqlite:///file is relative, sqlite:////file absolute.
        return Path(unquote(parts.path[1:]))
    if parts.scheme in ("postgresql", "postgres"):
        return url
    raise ConfigError(
        f"target.url has scheme {parts.scheme or 'none'!r}",
        hint="sqlite:///file or postgresql://user:password@host:port/database",
    )
