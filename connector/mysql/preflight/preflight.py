"""Whether the source is set up as the producer needs it, before anything is read or published.

Every check has its own sentence, and the statement that mends it as the hint. All of them are done, so that one run
tells everything there is to mend.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from connector.config.model import Source
from connector.ddl.mariadb import NOT_LOGGED
from connector.errors import MissingPrivilege, PreflightError
from connector.mysql.preflight.cascades import ACCEPT, cascading_keys
from connector.mysql.preflight.replication import own_log_rules, replication_rules, unlogged_replication
from connector.mysql.preflight.unmatched_patterns import unmatched_patterns
from connector.mysql.server.connection import Connection, account, query, speaking_to
from connector.mysql.server.privileges import Privileges, read_privileges, unreadable
from connector.mysql.server.source_facts import SourceFacts, read_facts
from connector.mysql.server.source_state import log_status
from connector.mysql.transforms.filters import Filter

NAMED_CASCADES = 5
GTIDS_WITHOUT_RESTART = (5, 7, 6)
NODUP = "FULL_NODUP"  # MariaDB 11.4: inserts and old rows are whole, of a new row what has changed is told


def preflight(
    connection: Connection, source: Source, filter: Filter | None = None, *, snapshot: bool, replica_uuid: str = ""
) -> SourceFacts:
    """Check the source.

    Args:
        connection: an open session of `source.user`.
        source: the section that was configured.
        filter: which tables are captured; made from `source.filters` when None.
        snapshot: whether an initial load is to be taken: it needs more privileges.
        replica_uuid: what we register with: a replica under our server_id with this UUID is an older one of us.

    Returns:
        What the server says of itself, with warnings for what is allowed but weakens a promise.

    Raises:
        PreflightError: something must be mended first; with several, the message lists each with its statement.
        SourceUnavailable: the server does not answer.
    """
    with speaking_to(source):
        facts = read_facts(connection)
        filter = filter or Filter(source.filters, facts.lower_case_table_names)
        privileges = read_privileges(connection)
        problems = [
            *_settings(facts, source),
            *_grants(facts, privileges, source, snapshot=snapshot),
            *_server_id(connection, facts, privileges, source, replica_uuid),
            *_unseen(facts, privileges, source, snapshot=snapshot),
            *_virtual_columns(connection, facts, filter),
            *_cascades(connection, facts, filter, source),
        ]
        monitors = _monitors(facts, privileges)
        if monitors:
            problems += [*_filtered(connection), *unlogged_replication(connection, facts)]
        if problems:
            raise _one_of(problems)
        left_out = replication_rules(connection, facts) if monitors else ""
        warnings = (
            *_warnings(facts, privileges, left_out, snapshot=snapshot),
            *unmatched_patterns(connection, source.filters, filter.fold),
        )
        return replace(facts, warnings=warnings)


def _settings(facts: SourceFacts, source: Source) -> Iterator[PreflightError]:
    if not facts.log_bin:
        yield PreflightError(
            "the source writes no binary log", hint="start mysqld with log_bin = binlog (needs a restart)"
        )
    wanted = {
        "binlog_format": (facts.binlog_format, "ROW", "statements do not tell which rows they changed"),
    }
    if facts.binlog_row_image == "MINIMAL":
        wanted["binlog_row_value_options"] = (
            facts.binlog_row_value_options,
            "",
            "with binlog_row_image=MINIMAL the log does not hold the documents that partial JSON is a difference from",
        )
    if source.statements == "keep":
        del wanted["binlog_format"]
    if facts.mariadb and facts.binlog_row_image not in ("FULL", NODUP):
        reason = f"a REPLACE does not log which columns it resets; only {NODUP} tells less than FULL and enough"
        wanted["binlog_row_image"] = (facts.binlog_row_image, "FULL", reason)
    if source.statements == "keep" and not facts.tells_names:
        yield PreflightError(
            f"{facts.server} cannot name columns in its log, and they cannot be followed where statements about "
            "temporary tables stand among the others",
            hint="--set source.statements=refuse, and binlog_format=ROW on the source",
        )
    elif source.statements == "keep":
        reason = "columns' names cannot be followed where statements about temporary tables stand among the others"
        wanted["binlog_row_metadata"] = (facts.binlog_row_metadata, "FULL", reason)
    for name, (found, needed, reason) in wanted.items():
        if found != needed:
            yield PreflightError(
                f"{name} is {found or 'empty'}, needed is {needed or 'empty'}: {reason}",
                hint=f"{facts.set_variable} {name} = '{needed}'; "
                "(sessions that are open keep theirs until they reconnect)",
            )
    if facts.binlog_row_metadata != "FULL" and not facts.utf8_is_utf8mb3:
        yield PreflightError(
            "old_mode lacks UTF8_IS_UTF8MB3: what `utf8` means in a definition is not in the log, and the log does not "
            f"name columns (binlog_row_metadata is {facts.binlog_row_metadata})",
            hint="SET GLOBAL binlog_row_metadata = 'FULL'; or SET GLOBAL old_mode = 'UTF8_IS_UTF8MB3'; "
            "(and in the server's configuration)",
        )
    if not facts.logs_sessions:
        yield PreflightError(
            "sql_log_bin is OFF: new sessions write nothing to the binary log", hint="SET GLOBAL sql_log_bin = ON;"
        )
    if not facts.gtid_strict_mode:
        yield PreflightError(
            "gtid_strict_mode is OFF: the numbers of a domain could go back, and no place be found again",
            hint="SET GLOBAL gtid_strict_mode = ON; (and in the server's configuration)",
        )


def _grants(facts: SourceFacts, privileges: Privileges, source: Source, *, snapshot: bool) -> Iterator[PreflightError]:
    to = account(source.user)
    if not privileges.has("REPLICATION SLAVE"):
        yield MissingPrivilege("the user lacks REPLICATION SLAVE", hint=f"GRANT REPLICATION SLAVE ON *.* TO {to};")
    if not _monitors(facts, privileges):
        name = _monitor(facts)
        yield MissingPrivilege(f"the user lacks {name}", hint=f"GRANT {name} ON *.* TO {to};")
    if not snapshot:
        return
    if not privileges.has("RELOAD", "FLUSH_TABLES"):
        name = facts.flush_privilege
        yield MissingPrivilege(
            f"the user lacks {name}{' (or RELOAD)' if name != 'RELOAD' else ''}, with which the snapshot finds its "
            "position",
            hint=f"GRANT {name} ON *.* TO {to};",
        )
    for place in unreadable(privileges, source.filters.do):
        yield MissingPrivilege(
            f"the user lacks SELECT on {place}: tables it may not read would silently be left out of the snapshot",
            hint=f"GRANT SELECT ON {place} TO {to};",
        )


def _unseen(facts: SourceFacts, privileges: Privileges, source: Source, *, snapshot: bool) -> Iterator[PreflightError]:
    """What is looked for in tables' definitions, where the user does not see all of them."""
    virtual = facts.mariadb and facts.binlog_row_image != "FULL"
    cascades = not facts.cascades_logged and not source.accept_unlogged_cascades
    if snapshot or not (virtual or cascades):
        return
    for place in unreadable(privileges, source.filters.do):
        what = "foreign keys, whose cascades are not in the log," if cascades else f"{NOT_LOGGED}: such columns"
        yield MissingPrivilege(
            f"the user lacks SELECT on {place}: {what} cannot be seen there",
            hint=f"GRANT SELECT ON {place} TO {account(source.user)};"
            + (f" or accept that the target may differ: {ACCEPT}" if cascades else ""),
        )


def _monitor(facts: SourceFacts) -> str:
    return "BINLOG MONITOR" if facts.mariadb else "REPLICATION CLIENT"


def _monitors(facts: SourceFacts, privileges: Privileges) -> bool:
    """Whether the user sees how far the binary log is."""
    return privileges.has(_monitor(facts))


def _server_id(
    connection: Connection, facts: SourceFacts, privileges: Privileges, source: Source, replica_uuid: str
) -> Iterator[PreflightError]:
    hint = f"set source.server_id to a number that no server or replica of this source has (not {source.server_id})"
    if facts.server_id == source.server_id:
        yield PreflightError(f"source.server_id {source.server_id} is the source's own", hint=hint)
    if not privileges.has("REPLICATION SLAVE"):
        return
    if facts.mariadb:
        return  # it does not tell replicas apart: an older producer of ours could not be told from another's
    modern = facts.shows_replicas
    for row in query(connection, "SHOW REPLICAS" if modern else "SHOW SLAVE HOSTS"):
        uuid = str(row["Replica_UUID" if modern else "Slave_UUID"])
        if int(row["Server_Id" if modern else "Server_id"]) == source.server_id and uuid != replica_uuid:
            yield PreflightError(
                f"source.server_id {source.server_id} is taken by a replica ({row['Host'] or 'host unknown'}, {uuid})",
                hint=hint,
            )


def _cascades(connection: Connection, facts: SourceFacts, filter: Filter, source: Source) -> Iterator[PreflightError]:
    if facts.cascades_logged or source.accept_unlogged_cascades:
        return
    keys = cascading_keys(connection, facts, filter)
    if keys:
        named = ", ".join(map(str, keys[:NAMED_CASCADES])) + (" …" if len(keys) > NAMED_CASCADES else "")
        yield PreflightError(
            f"{len(keys)} foreign keys change rows without the binary log saying so: {named}",
            hint=f"ALTER TABLE {keys[0].table} DROP FOREIGN KEY {keys[0].name}; … or upgrade to MySQL 9.6, "
            f"or accept that the target will differ: {ACCEPT}",
        )


def _filtered(connection: Connection) -> Iterator[PreflightError]:
    """A server that leaves something out of its own log, by the schema of each statement or row."""
    for name, value in own_log_rules(log_status(connection) or {}).items():
        yield PreflightError(
            f"{name} is {value}: the source leaves changes out of its binary log, definitions by the session's default "
            "schema alone",
            hint=f"take {name} out of the server's configuration (needs a restart), and choose tables by "
            "source.filters; then begin a new log (another `service`)",
        )


def _virtual_columns(connection: Connection, facts: SourceFacts, filter: Filter) -> Iterator[PreflightError]:
    if not facts.mariadb or facts.binlog_row_image == "FULL":
        return
    rows = query(
        connection,
        "SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t, COLUMN_NAME AS c FROM information_schema.COLUMNS "
        "WHERE EXTRA LIKE '%VIRTUAL GENERATED%' ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION",
    )
    named = [f"{row['s']}.{row['t']}.{row['c']}" for row in rows if filter.captures(row["s"], row["t"])]
    if named:
        shown = ", ".join(named[:NAMED_CASCADES]) + (" …" if len(named) > NAMED_CASCADES else "")
        yield PreflightError(
            f"binlog_row_image is {facts.binlog_row_image}: {NOT_LOGGED}: {shown}",
            hint="SET GLOBAL binlog_row_image = 'FULL'; (sessions that are open keep theirs until they reconnect), or "
            "leave the tables out with source.filters.ignore",
        )


def _warnings(facts: SourceFacts, privileges: Privileges, left_out: str, *, snapshot: bool) -> Iterator[str]:
    if left_out:
        yield (
            f"the source is a replica that leaves out a part of what its own source has ({left_out}): a log that goes "
            "on from that source, or on it, has these changes from there alone"
        )
    if not facts.stops_without_log:
        yield (
            "binlog_error_action is IGNORE_ERROR: where the source cannot write its binary log it goes on without one, "
            "and what it changes then is nowhere: binlog_error_action = ABORT_SERVER in its configuration"
        )
    if facts.sync_binlog != 1:
        yield (
            f"sync_binlog is {facts.sync_binlog}: after a crash the source may have lost transactions that are "
            f"published: {facts.set_variable} sync_binlog = 1;"
        )
    if facts.flush_log_at_commit != 1:
        yield (
            f"innodb_flush_log_at_trx_commit is {facts.flush_log_at_commit}: after a crash the source may have lost "
            f"transactions that are published: {facts.set_variable} innodb_flush_log_at_trx_commit = 1;"
        )
    if not facts.tells_names:
        yield (
            f"{facts.server} cannot name columns in its log: they are named by a history of the tables, which follows "
            "every DDL and stops at the first it does not understand"
        )
    elif facts.binlog_row_metadata != "FULL":
        yield (
            f"binlog_row_metadata is {facts.binlog_row_metadata}: columns are named by a history of the tables, which "
            "follows every DDL and stops at the first it does not understand; with FULL the log names them itself: "
            f"{facts.set_variable} binlog_row_metadata = 'FULL';"
        )
    if facts.binlog_row_image == NODUP:
        yield (
            f"binlog_row_image is {NODUP}: an update tells the columns that it changes alone: nothing can be applied a "
            f"second time from an earlier place: {facts.set_variable} binlog_row_image = 'FULL';"
        )
    elif facts.binlog_row_image != "FULL":
        yield (
            f"binlog_row_image is {facts.binlog_row_image}: the log does not hold whole rows. Applying stops at an "
            "insert that leaves out a column whose default is not known, and at changes of tables without a primary "
            "key that leave out columns of the old row; nothing can be applied a second time from an earlier place: "
            f"{facts.set_variable} binlog_row_image = 'FULL';"
        )
    if facts.binlog_row_value_options:
        yield (
            "binlog_row_value_options is PARTIAL_JSON: reading stops at a document whose old value a session with "
            "binlog_row_image=MINIMAL left out of the log: SET PERSIST binlog_row_value_options = '';"
        )
    if facts.binlog_format != "ROW":
        yield (
            f"binlog_format is {facts.binlog_format}: changes that are logged as statements are kept as statements, "
            f"which no target can apply: {facts.set_variable} binlog_format = 'ROW';"
        )
    if not facts.gtids:
        yield (
            f"gtid_mode is {facts.gtid_mode}: after a failover of the source the log cannot go on: "
            f"{facts.set_variable} enforce_gtid_consistency = ON; and gtid_mode step by step to ON"
            if facts.release >= GTIDS_WITHOUT_RESTART
            else f"gtid_mode is {facts.gtid_mode}: after a failover of the source the log cannot go on: start mysqld "
            "with gtid_mode = ON, enforce_gtid_consistency = ON, log_slave_updates = ON (needs a restart)"
        )
    if snapshot and not facts.mariadb and facts.tells_names and not privileges.has("XA_RECOVER_ADMIN"):
        yield (
            "the user may not see prepared XA transactions: if there is one now, the log will stop at its commit: "
            "GRANT XA_RECOVER_ADMIN"
        )


def _one_of(problems: list[PreflightError]) -> PreflightError:
    if len(problems) == 1:
        return problems[0]
    listed = "".join(
        f"\n  {number}. {problem.message}\n     {problem.hint}" for number, problem in enumerate(problems, 1)
    )
    error = PreflightError(f"{len(problems)} prerequisites are missing on the source:{listed}")
    error.problems = tuple(problems)
    return error
