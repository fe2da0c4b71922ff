"""The entrance of the folder (`TargetKind`): opens, checks and reads a PostgreSQL target."""

from __future__ import annotations

from collections.abc import Callable, Collection

from connector.clock import Clock
from connector.config.apply import Target as Options
from connector.errors import MissingPrivilege, PreflightError, TargetUnavailable
from connector.log.compact.history import history_tables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.targets.postgres.connection import server_of, unverified
from connector.targets.postgres.progress import read_heartbeat, read_position
from connector.targets.postgres.signal_table import PostgresSignalSession
from connector.targets.postgres.target import PostgresTarget

__all__ = ["check", "open_session", "open_target", "read_heartbeat", "read_position", "unverified"]

CHECK_PATIENCE = 4  # seconds for the server to answer `thl check`
# `to_regclass` fails for a user who may not use the schema: one of another user's applier, for example.
_FACTS = """
SELECT current_setting('server_version'), current_database(), current_user, current_setting('server_encoding'),
    has_database_privilege(current_database(), 'CREATE') OR EXISTS (
        SELECT FROM pg_namespace n WHERE n.nspname = 'thl' AND (has_schema_privilege(n.oid, 'CREATE')
            OR EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname = 'thl_position'
                AND has_schema_privilege(n.oid, 'USAGE'))))
"""


def open_target(options: Options, clock: Clock, columns: MetadataColumns | None) -> PostgresTarget:
    """Open the target for an applier."""
    return PostgresTarget(
        options.url,
        clock,
        audit=options.audit,
        columns=columns,
        history=history_tables(options.history),
        indexes=options.indexes,
        writers=options.writers,
        snapshot_interval=options.snapshot_interval,
    )


def check(options: Options, databases: Callable[[], Collection[str] | None]) -> str:
    """Check that the database is in UTF-8, and that the user may create schemas in it, or tables in a schema `thl`."""
    del databases  # what is granted covers all of them
    url = options.url.get_secret_value()
    try:
        session = PostgresSignalSession(url, CHECK_PATIENCE)
    except TargetUnavailable as error:
        hint = "start the target's server, or correct host and port in target.url"
        raise TargetUnavailable(error.message, hint=error.hint or hint, **error.where, server=server_of(url)) from error
    try:
        ((version, database, user, encoding, creates),) = session.run(_FACTS, ())
    finally:
        session.close()
    if encoding != "UTF8":
        raise PreflightError(
            f"the database {database} is in {encoding}, not in UTF-8", hint="CREATE DATABASE … ENCODING 'UTF8'"
        )
    if not creates:
        raise MissingPrivilege(
            f"the user {user} may not create schemas in the database {database}",
            hint=f'GRANT CREATE ON DATABASE "{database}" TO "{user}";',
        )
    return f"PostgreSQL {version}, database {database}, user {user}"


def open_session(url: str) -> PostgresSignalSession:
    """Open a session for the signal tables."""
    return PostgresSignalSession(url)
