"""What `connector.targets.open` asks of this kind of target: see `Kind` there."""

from __future__ import annotations

from connector.clock import Clock
from connector.config.model import Target as Options
from connector.log.compact.metadata_columns import MetadataColumns
from connector.targets.postgres.connection import unverified
from connector.targets.postgres.signal_table import PostgresSession
from connector.targets.postgres.target import PostgresTarget

__all__ = ["open_session", "open_target", "unverified"]


def open_target(options: Options, clock: Clock, columns: MetadataColumns | None) -> PostgresTarget:
    """Open a session that applies."""
    return PostgresTarget(options.url.get_secret_value(), clock, audit=options.audit, columns=columns)


def open_session(url: str) -> PostgresSession:
    """Open a session that claims nothing."""
    return PostgresSession(url)
