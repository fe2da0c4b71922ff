"""What `connector.targets.open` asks of this kind of target: see `Kind` there."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from connector.clock import Clock
from connector.config.model import Target as Options
from connector.errors import ConfigError
from connector.log.compact.metadata_columns import MetadataColumns
from connector.targets.sqlite.signal_table import SqliteSession
from connector.targets.sqlite.target import SqliteTarget


def open_target(options: Options, clock: Clock, columns: MetadataColumns | None) -> SqliteTarget:
    """Open the file, which is created if it is not there."""
    return SqliteTarget(_file(options.url.get_secret_value()), clock, audit=options.audit, columns=columns)


def open_session(url: str) -> SqliteSession:
    """Open the file as it is."""
    return SqliteSession(_file(url))


def unverified(url: str) -> str:
    """Nothing is sent anywhere."""
    _file(url)
    return ""


def _file(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc or len(parts.path) <= 1:
        raise ConfigError("target.url names no file", hint="sqlite:///relative/file or sqlite:////absolute/file")
    return Path(unquote(parts.path[1:]))
