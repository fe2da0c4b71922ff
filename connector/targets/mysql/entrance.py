"""The entrance of the folder (`TargetKind`): opens, checks and reads a MySQL or MariaDB target."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from connector.clock import Clock
from connector.config.apply import Target as Options
from connector.config.target_url import mysql_address
from connector.errors import MissingPrivilege, TargetUnavailable
from connector.log.compact.history import history_tables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.targets.mysql.connection import ServerSession, unverified
from connector.targets.mysql.once import DdlOnce
from connector.targets.mysql.progress import read_heartbeat, read_position
from connector.targets.mysql.signal_table import MySqlSession
from connector.targets.mysql.statements import StatementExecutor
from connector.targets.mysql.target import MySqlTarget

__all__ = ["check", "open_session", "open_target", "read_heartbeat", "read_position", "unverified"]

CHECK_PATIENCE = 4  # seconds for the server to answer `thl check`
NEEDED = ("CREATE", "ALTER", "DROP", "INDEX", "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE TEMPORARY TABLES")
_GRANT = re.compile(r"GRANT (.+?) ON (\*|`(?:[^`]|``)+`)\.\* TO ", re.DOTALL)
_OWN, _EVERYWHERE, _ALL = "`thl`", "*", "ALL PRIVILEGES"
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
        statements=options.executes_statements,
    )


def open_session(url: str) -> MySqlSession:
    """Open a session for the signal tables."""
    return MySqlSession(url)


def check(options: Options) -> str:
    """Check that the server answers, can be a target, and gives the user what an applier needs."""
    url = options.url.get_secret_value()
    address = mysql_address(url)
    try:
        session = MySqlSession(url, CHECK_PATIENCE)
    except TargetUnavailable as error:
        hint = "start the target's server, or correct host and port in target.url"
        where = {**error.where, "server": f"{address.host}:{address.port}"}
        raise TargetUnavailable(error.message, hint=error.hint or hint, **where) from error
    try:
        granted = granted_by_scope([str(line) for (line,) in session.run("SHOW GRANTS", ())])
        product, mariadb = session.session.product, session.session.mariadb
        ddl, triggers = _ddl(session.session), _triggers(session)
        if options.executes_statements:
            StatementExecutor(session.session).check_server()
    finally:
        session.close()
    foreign_keys = options.definitions == "source" and not mariadb
    needed = (*NEEDED, REFERENCES) if foreign_keys else NEEDED
    if found := lacking(granted, needed):
        raise MissingPrivilege(
            f"the user {address.user} lacks privileges on the target: "
            + ", ".join(dict.fromkeys(name for names in found.values() for name in names)),
            hint=" ".join(
                f"GRANT {', '.join(names)} ON {scope}.* TO '{address.user}'@'%';" for scope, names in found.items()
            ),
        )
    fired = f"; triggers that act on what is applied: {', '.join(triggers)}" if triggers else ""
    return f"{product}, {address.host}:{address.port}, user {address.user}, DDL once by {ddl}{fired}"


def granted_by_scope(lines: Sequence[str]) -> dict[str, set[str]]:
    """The privileges of a user and its active roles: `*`, or the quoted name of a database → their names.

    Args:
        lines: of SHOW GRANTS. `information_schema.user_privileges` knows no roles, and shows who may read `mysql`
            everybody's privileges.
    """
    found: dict[str, set[str]] = {}
    for line in lines:
        if grant := _GRANT.match(line):
            found.setdefault(grant[2], set()).update(name.strip().upper() for name in grant[1].split(","))
    return found


def lacking(granted: Mapping[str, set[str]], needed: Sequence[str]) -> dict[str, list[str]]:
    """What a user lacks: `*`, or the quoted name of a database → names of privileges.

    A user who may write to databases needs all of them on each, and on `thl`; any other user needs them on `*.*`.
    Which databases the log has is not known here: the applier says so where it comes to another one.
    """
    everywhere = granted.get(_EVERYWHERE, set())
    databases = [scope for scope, names in granted.items() if scope != _EVERYWHERE and names & {"INSERT", _ALL}]
    scopes = dict.fromkeys((_OWN, *databases)) if set(databases) - {_OWN} else {_EVERYWHERE: None}
    found = {
        scope: [name for name in needed if not (everywhere | granted.get(scope, set())) & {name, _ALL}]
        for scope in scopes
    }
    return {scope: names for scope, names in found.items() if names}


def _ddl(session: ServerSession) -> str:
    """How the target tells whether a DDL statement was executed (`once`)."""
    once = DdlOnce(session, "", "")
    if once.gtids:
        return "GTIDs"
    return "tables' numbers" if once.reads_table_ids else "tables' definitions (GRANT PROCESS for their numbers)"


def _triggers(session: MySqlSession) -> list[str]:
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
