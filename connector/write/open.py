"""A target by its URL."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from connector.clock import Clock
from connector.config import Target as Options
from connector.errors import ConfigError
from connector.write.postgres import PostgresTarget
from connector.write.sqlite import SqliteTarget
from connector.write.target import Target


def open_target(options: Options, clock: Clock) -> Target:
    """Open the target that the configuration names.

    Args:
        options: its URL, and whether to audit.
        clock: for the time of each commit.

    Raises:
        ConfigError: a URL of no known kind.
        TargetUnavailable: it does not answer.
    """
    url = options.url.get_secret_value()
    parts = urlsplit(url)
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        # sqlite:///file is relative, sqlite:////file absolute.
        return SqliteTarget(Path(unquote(parts.path[1:])), clock, audit=options.audit)
    if parts.scheme in ("postgresql", "postgres"):
        return PostgresTarget(url, clock, audit=options.audit)
    raise ConfigError(
        f"target.url has scheme {parts.scheme or 'none'!r}",
        hint="sqlite:///file or postgresql://user:password@host:port/database",
    )
