"""The entrance of the folder (`TargetKind`): opens, checks and reads a MySQL or MariaDB target."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from connector.clock import Clock
from connector.config.apply import Target as Options
from connector.config.target_url import mysql_address
from connector.errors import MissingPrivilege, TargetUnavailable
from connector.log.compact.history import history_tables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.targets.mysql.ddl.once import DdlOnce
from connector.targets.mysql.logged_statements import StatementExecutor
from connector.targets.mysql.progress import read_heartbeat, read_position
from connector.targets.mysql.server.connection import ServerSession, unverified
from connector.targets.mysql.server.grants import OWN
from connector.targets.mysql.signal_table import MySqlSignalSession
from connector.targets.mysql.target import MySqlTarget

__all__ = ["check", "open_session", "open_target", "read_heartbeat", "read_position", "unverified"]

CHECK_PATIENCE = 4  # seconds for the server to answer `thl check`
NEEDED = ("CREATE", "ALTER", "DROP", "INDEX", "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE TEMPORARY TABLES")
REFERENCES = "REFERENCES"  # MySQL asks for it at each foreign key, whatever foreign_key_checks is; MariaDB does not


def open_target(options: Options, clock: Clock, columns: MetadataColumns | None) -> MySqlTarget:
    """Open the target for an applier."""
    return MySqlTarget(
        options.url,
        clock,
        audit=options.audit,
        columns=columns,
        history=history_tables(options.history),
        binary_log=options.binary_log,
        definitions=options.definitions,
        executes_statements=options.executes_statements,
    )


def open_session(url: str) -> MySqlSignalSession:
    """Open a session for the signal tables."""
    return MySqlSignalSession(url)


def check(options: Options, databases: Callable[[], Collection[str] | None]) -> str:
    """Check that the server answers, can be a target, and gives the user what an applier needs."""
    url = options.url.get_secret_value()
    address = mysql_address(url)
    try:
        session = MySqlSignalSession(url, CHECK_PATIENCE)
    except TargetUnavailable as error:
        hint = "start the target's server, or correct host and port in target.url"
        where = {**error.where, "server": f"{address.host}:{address.port}"}
        raise TargetUnavailable(error.message, hint=error.hint or hint, **where) from error
    try:
        granted = session.session.granted
        product, mariadb = session.session.product, session.session.mariadb
        session.run("START TRANSACTION READ WRITE", ())  # which a server refuses that this user finds read only
        session.run("ROLLBACK", ())
        ddl, triggers = _ddl(session.session), _triggers(session)
        if options.executes_statements:
            StatementExecutor(session.session).check_server()
    finally:
        session.close()
    foreign_keys = options.definitions == "source" and not mariadb
    needed = (*NEEDED, REFERENCES) if foreign_keys else NEEDED
    schemas = databases()
    if found := granted.lacking(needed, schemas):
        raise MissingPrivilege(
            f"the user {address.user} lacks privileges on the target: "
            + ", ".join(dict.fromkeys(name for names in found.values() for name in names)),
            hint=_grants(found, address.user),
        )
    notes = f"; triggers that act on what is applied: {', '.join(triggers)}" if triggers else ""
    if unseen := {scope: names for scope, names in granted.lacking(("TRIGGER",), schemas).items() if scope != OWN}:
        notes += f"; it sees no triggers that may act on what is applied: {_grants(unseen, address.user)}"
    if schemas is None and (kept := granted.kept_from(needed)):
        notes += f"; the log must not have databases from which partial revokes keep it: {_grants(kept, address.user)}"
    return f"{product}, {address.host}:{address.port}, user {address.user}, DDL once by {ddl}{notes}"


def _grants(found: Mapping[str, Sequence[str]], user: str) -> str:
    """The statements that give a user privileges."""
    return " ".join(f"GRANT {', '.join(names)} ON {scope}.* TO '{user}'@'%';" for scope, names in found.items())


def _ddl(session: ServerSession) -> str:
    """The means by which the target tells whether a DDL statement was executed (`once`)."""
    once = DdlOnce(session, "", "")
    if once.gtids:
        return "GTIDs"
    return "tables' numbers" if once.reads_table_ids else "tables' definitions (GRANT PROCESS for their numbers)"


def _triggers(session: MySqlSignalSession) -> list[str]:
    """The triggers of tables that an applier writes."""
    if not session.has("thl_tables"):
        return []
    found = session.run(
        "SELECT concat_ws('.', r.event_object_schema, r.event_object_table, r.trigger_name) "
        "FROM information_schema.triggers r JOIN thl.thl_tables t ON BINARY t.schema_name = BINARY "
        "r.event_object_schema AND BINARY t.table_name = BINARY r.event_object_table ORDER BY 1",
        (),
    )
    return [str(name) for (name,) in found]
