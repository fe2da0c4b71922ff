"""Checks that the source has the settings and grants that the producer needs, before anything is read.

Every missing prerequisite is reported with the SQL that fixes it, all in one run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from connector.config.source import Source
from connector.ddl.mariadb import NOT_LOGGED
from connector.errors import MissingPrivilege, PreflightError
from connector.log.rules import NEW_LOG
from connector.mysql.preflight.cascades import ACCEPT, cascading_keys
from connector.mysql.preflight.replication import (
    own_log_rules,
    replication_rules,
    stopped_replication,
    unlogged_replication,
    unseen_lag,
)
from connector.mysql.preflight.semi_sync import locking_loads, semi_sync_problems, semi_sync_warnings
from connector.mysql.preflight.unmatched_patterns import unmatched_patterns
from connector.mysql.server.connection import Connection, account, query, source_errors
from connector.mysql.server.privileges import Privileges, read_privileges, unreadable
from connector.mysql.server.source_facts import SourceFacts, read_facts
from connector.mysql.server.source_state import log_status
from connector.mysql.transforms.filters import Filter

NAMED_CASCADES = 5
NOW = "now"  # of source.start
GTIDS_WITHOUT_RESTART = (5, 7, 6)
NODUP = "FULL_NODUP"  # MariaDB 11.4: inserts and before images are complete; after images have only changed columns


def preflight(
    connection: Connection, source: Source, filter: Filter | None = None, *, snapshot: bool, replica_uuid: str = ""
) -> SourceFacts:
    """Checks the source.

    Args:
        connection: an open session of `source.user`.
        source: the configured section.
        filter: the captured tables; None: created from `source.filters`.
        snapshot: true if an initial load follows, or `reads_definitions`: both need more privileges.
        replica_uuid: UUID of this replica: a replica with the same server_id and UUID is an earlier session of it.

    Returns:
        The source's facts, with warnings for settings that are allowed but weaken a promise.

    Raises:
        PreflightError: a prerequisite is missing; if several are, the message lists each with its fix.
        SourceUnavailable: the server does not answer.
    """
    with source_errors(source):
        facts = read_facts(connection)
        filter = filter or Filter(source.filters, facts.lower_case_table_names)
        privileges = read_privileges(connection)
        problems = [
            *_settings(facts, source),
            *(
                _with_roles(one, facts, privileges, source)
                for one in _grants(facts, privileges, source, snapshot=snapshot)
            ),
            *_server_id(connection, facts, privileges, source, replica_uuid),
            *_unseen(facts, privileges, source, snapshot=snapshot),
            *_virtual_columns(connection, facts, filter),
            *_cascades(connection, facts, filter, source),
            *(semi_sync_problems(connection, facts, snapshot=snapshot) if source.semi_sync else ()),
            *unseen_lag(connection, facts, source),
        ]
        monitors = _monitors(facts, privileges)
        if monitors:
            problems += [*_filtered(connection), *unlogged_replication(connection, facts)]
        if problems:
            raise _one_of(problems)
        left_out = replication_rules(connection, facts) if monitors else ""
        warnings = (
            *_warnings(facts, privileges, left_out, snapshot=snapshot, completes=source.records.dir is not None),
            *(semi_sync_warnings(connection, facts, snapshot=snapshot) if source.semi_sync else ()),
            *(_fired_triggers(connection, filter) if source.statements == "keep" else ()),
            *(locking_loads(facts) if source.semi_sync else ()),
            *stopped_replication(connection, source),
            *unmatched_patterns(connection, source.filters, filter.fold),
        )
        virtual = frozenset((schema, table) for schema, table, _ in _virtual(connection, facts, filter))
        unique = _unique(connection, facts, filter)
        return replace(facts, warnings=warnings, virtual_tables=virtual, unique_tables=unique)


def reads_definitions(facts: SourceFacts, source: Source) -> bool:
    """Return True if a log that begins at `now` reads the definitions there, which needs the privileges of a load."""
    # With a record store so that it gives no defaults of a CREATE TABLE IF NOT EXISTS that finds its table.
    return source.start == NOW and (facts.binlog_row_metadata != "FULL" or source.records.dir is not None)


def _settings(facts: SourceFacts, source: Source) -> Iterator[PreflightError]:
    if not facts.log_bin:
        yield PreflightError(
            "the source writes no binary log",
            hint="start mysqld with log_bin = binlog (needs a restart)",
            setting="log_bin",
            found="OFF",
        )
    yield from _row_settings(facts, source)
    if not facts.logs_sessions:
        yield PreflightError(
            "new sessions write nothing to the binary log",
            hint="SET GLOBAL sql_log_bin = ON;",
            setting="sql_log_bin",
            found="OFF",
            needed="ON",
        )
    if not facts.gtid_strict_mode:
        yield PreflightError(
            "the numbers of a GTID domain can go back, so positions are ambiguous",
            hint="SET GLOBAL gtid_strict_mode = ON; (and in the server's configuration)",
            setting="gtid_strict_mode",
            found="OFF",
            needed="ON",
        )


def _row_settings(facts: SourceFacts, source: Source) -> Iterator[PreflightError]:
    """The settings that decide what the binary log holds of a row."""
    required = {
        "binlog_format": (facts.binlog_format, "ROW", "the log must have changed rows, not statements"),
    }
    if facts.binlog_row_image == "MINIMAL" and source.records.dir is None:
        required["binlog_row_value_options"] = (
            facts.binlog_row_value_options,
            "",
            "with binlog_row_image=MINIMAL the log lacks the documents that partial JSON is a difference from",
        )
    if source.statements == "keep":
        del required["binlog_format"]
    if facts.mariadb and facts.binlog_row_image not in ("FULL", NODUP):
        reason = f"REPLACE does not log the columns that it resets; only FULL and {NODUP} log enough"
        required["binlog_row_image"] = (facts.binlog_row_image, "FULL", reason)
    if source.statements == "keep" and not facts.logs_column_names:
        yield PreflightError(
            "the source cannot name columns in its log, and tables cannot be followed through statements, some of "
            "which may be about temporary tables",
            hint="--set source.statements=refuse, and binlog_format=ROW on the source",
            option="source.statements",
            server=facts.server,
        )
    elif source.statements == "keep":
        reason = "tables cannot be followed through statements, some of which may be about temporary tables"
        required["binlog_row_metadata"] = (facts.binlog_row_metadata, "FULL", reason)
    for name, (found, needed, reason) in required.items():
        if found != needed:
            yield PreflightError(
                f"a setting of the source must be another: {reason}",
                hint=f"{facts.set_variable} {name} = '{needed}'; (open sessions keep their value until they reconnect)"
                + (
                    "; or set source.records.dir, a folder for whole rows" if name == "binlog_row_value_options" else ""
                ),
                setting=name,
                found=found or "''",
                needed=needed or "''",
            )
    if facts.binlog_row_metadata != "FULL" and not facts.utf8_is_utf8mb3:
        yield PreflightError(
            "old_mode lacks UTF8_IS_UTF8MB3: the log does not show what `utf8` means in a definition, and does not "
            "name columns",
            hint="SET GLOBAL binlog_row_metadata = 'FULL'; or SET GLOBAL old_mode = 'UTF8_IS_UTF8MB3'; "
            "(and in the server's configuration)",
            setting="binlog_row_metadata",
            found=facts.binlog_row_metadata,
            needed="FULL",
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
    reader, reason = "the snapshot", ""
    if source.start == NOW:
        needs = "binlog_row_metadata is not FULL" if facts.binlog_row_metadata != "FULL" else "of source.records.dir"
        reader, reason = "the start at `now`", f" (it reads the tables' definitions there, because {needs})"
    if not privileges.has("RELOAD", "FLUSH_TABLES"):
        name = facts.flush_privilege
        yield MissingPrivilege(
            f"the user lacks {name}{' (or RELOAD)' if name != 'RELOAD' else ''}, with which {reader} finds its "
            f"position{reason}",
            hint=f"GRANT {name} ON *.* TO {to};",
        )
    for objects in unreadable(privileges, source.filters.do):
        yield MissingPrivilege(
            f"the user lacks SELECT on {objects}: {reader} would omit tables that it may not read{reason}",
            hint=f"GRANT SELECT ON {objects} TO {to};",
        )


def _with_roles(error: PreflightError, facts: SourceFacts, privileges: Privileges, source: Source) -> PreflightError:
    """Name the roles that may give a privilege, and that a session does not have."""
    if privileges.inactive:
        roles = ", ".join(privileges.inactive)
        default = f"SET DEFAULT ROLE {roles} {'FOR' if facts.mariadb else 'TO'} {account(source.user)};"
        error.hint += f" or, if a role has it that is not active: {default}"
    return error


def _unseen(facts: SourceFacts, privileges: Privileges, source: Source, *, snapshot: bool) -> Iterator[PreflightError]:
    """Reports scopes whose definitions the user may not see, if definitions must be checked."""
    virtual = facts.mariadb and facts.binlog_row_image != "FULL"
    cascades = not facts.cascades_logged and not source.accept_unlogged_cascades
    if snapshot or not (virtual or cascades):
        return
    for objects in unreadable(privileges, source.filters.do):
        what = "foreign keys, whose cascades are not in the log," if cascades else f"{NOT_LOGGED}: such columns"
        yield MissingPrivilege(
            f"the user lacks SELECT on {objects}: {what} cannot be seen there",
            hint=f"GRANT SELECT ON {objects} TO {account(source.user)};"
            + (f" or accept that the target may differ: {ACCEPT}" if cascades else ""),
        )


def _monitor(facts: SourceFacts) -> str:
    return "BINLOG MONITOR" if facts.mariadb else "REPLICATION CLIENT"


def _monitors(facts: SourceFacts, privileges: Privileges) -> bool:
    """True if the user may read the extent of the binary log."""
    return privileges.has(_monitor(facts))


def _server_id(
    connection: Connection, facts: SourceFacts, privileges: Privileges, source: Source, replica_uuid: str
) -> Iterator[PreflightError]:
    hint = f"set source.server_id to a number that no server or replica of this source has (not {source.server_id})"
    if facts.server_id == source.server_id:
        yield PreflightError(
            "source.server_id is the source's own", hint=hint, option="source.server_id", server_id=source.server_id
        )
    if not privileges.has("REPLICATION SLAVE"):
        return
    if facts.mariadb:
        return  # has no replica UUIDs: an earlier session of this producer looks like another replica
    modern = facts.shows_replicas
    for row in query(connection, "SHOW REPLICAS" if modern else "SHOW SLAVE HOSTS"):
        uuid = str(row["Replica_UUID" if modern else "Slave_UUID"])
        if int(row["Server_Id" if modern else "Server_id"]) == source.server_id and uuid != replica_uuid:
            yield PreflightError(
                "source.server_id is taken by a replica",
                hint=f"{hint}; one that was killed looks registered for two of its heartbeats, mostly 10 seconds",
                option="source.server_id",
                server_id=source.server_id,
                replica=uuid,
                host=row["Host"] or None,
            )


def _cascades(connection: Connection, facts: SourceFacts, filter: Filter, source: Source) -> Iterator[PreflightError]:
    if facts.cascades_logged or source.accept_unlogged_cascades:
        return
    keys = cascading_keys(connection, facts, filter)
    if keys:
        named = ", ".join(map(str, keys[:NAMED_CASCADES])) + (" …" if len(keys) > NAMED_CASCADES else "")
        yield PreflightError(
            f"foreign keys change rows that the binary log does not have: {named}",
            hint=f"ALTER TABLE {keys[0].table} DROP FOREIGN KEY {keys[0].name}; … or upgrade to MySQL 9.6, "
            f"or accept that the target will differ: {ACCEPT}",
            foreign_keys=len(keys),
        )


def _filtered(connection: Connection) -> Iterator[PreflightError]:
    """Reports a server that filters its own log by schema."""
    for name, value in own_log_rules(log_status(connection) or {}).items():
        yield PreflightError(
            "the source omits changes from its binary log; definitions by the session's default schema alone",
            hint=f"remove {name} from the server's configuration (needs a restart), and choose tables by "
            f"source.filters; then {NEW_LOG}",
            setting=name,
            found=value,
        )


def _virtual(connection: Connection, facts: SourceFacts, filter: Filter) -> list[tuple[str, str, str]]:
    """Schema, table and name of a MariaDB's VIRTUAL columns in captured tables."""
    if not facts.mariadb:
        return []
    rows = query(
        connection,
        "SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t, COLUMN_NAME AS c FROM information_schema.COLUMNS "
        "WHERE EXTRA LIKE '%VIRTUAL GENERATED%' ORDER BY TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION",
    )
    return [(row["s"], row["t"], row["c"]) for row in rows if filter.captures(row["s"], row["t"])]


def _unique(connection: Connection, facts: SourceFacts, filter: Filter) -> frozenset[tuple[str, str]]:
    """Schema and name of a MariaDB's captured tables with a unique index besides the primary key."""
    if not facts.mariadb:
        return frozenset()
    rows = query(
        connection,
        "SELECT DISTINCT TABLE_SCHEMA AS s, TABLE_NAME AS t FROM information_schema.STATISTICS "
        "WHERE NON_UNIQUE = 0 AND INDEX_NAME <> 'PRIMARY'",
    )
    return frozenset((row["s"], row["t"]) for row in rows if filter.captures(row["s"], row["t"]))


def _virtual_columns(connection: Connection, facts: SourceFacts, filter: Filter) -> Iterator[PreflightError]:
    if facts.binlog_row_image == "FULL":
        return
    named = [".".join(column) for column in _virtual(connection, facts, filter)]
    if named:
        shown = ", ".join(named[:NAMED_CASCADES]) + (" …" if len(named) > NAMED_CASCADES else "")
        yield PreflightError(
            NOT_LOGGED,
            hint="SET GLOBAL binlog_row_image = 'FULL'; (open sessions keep their value until they reconnect), or "
            "leave the tables out with source.filters.ignore",
            setting="binlog_row_image",
            found=facts.binlog_row_image,
            columns=shown,
        )


def _warnings(
    facts: SourceFacts, privileges: Privileges, left_out: str, *, snapshot: bool, completes: bool
) -> Iterator[str]:
    """Settings that are allowed but weaken a promise."""
    yield from _durability_warnings(facts)
    yield from _content_warnings(facts, completes=completes)
    if left_out:
        yield (
            f"the source is a replica that filters what it replicates ({left_out}): after a failover to its own source "
            "the log has the filtered changes from there on alone"
        )
    if not facts.gtids:
        yield (
            f"gtid_mode is {facts.gtid_mode}: after a failover of the source the log cannot continue: "
            f"{facts.set_variable} enforce_gtid_consistency = ON; and gtid_mode step by step to ON"
            if facts.release >= GTIDS_WITHOUT_RESTART
            else f"gtid_mode is {facts.gtid_mode}: after a failover of the source the log cannot continue: start "
            "mysqld with gtid_mode = ON, enforce_gtid_consistency = ON, log_slave_updates = ON (needs a restart)"
        )
    if snapshot and not facts.mariadb and facts.logs_column_names and not privileges.has("XA_RECOVER_ADMIN"):
        yield (
            "the user may not see prepared XA transactions: if one is prepared now, the log will stop at its commit: "
            "GRANT XA_RECOVER_ADMIN"
        )


def _durability_warnings(facts: SourceFacts) -> Iterator[str]:
    """Settings with which the source can lose transactions that are published, or change rows without logging them."""
    if not facts.stops_without_log:
        yield (
            "binlog_error_action is IGNORE_ERROR: if the source cannot write its binary log it continues without one, "
            "and those changes are lost to the log: binlog_error_action = ABORT_SERVER in its configuration"
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


def _content_warnings(facts: SourceFacts, *, completes: bool) -> Iterator[str]:
    """Settings with which the log has less than whole rows and column names.

    Args:
        completes: a record store completes partial row images.
    """
    if not facts.logs_column_names:
        yield (
            f"{facts.server} cannot name columns in its log: names come from a history of the tables, which follows "
            "every DDL and stops at the first that it does not understand"
        )
    elif facts.binlog_row_metadata != "FULL":
        yield (
            f"binlog_row_metadata is {facts.binlog_row_metadata}: column names come from a history of the "
            "tables, which follows every DDL and stops at the first that it does not understand; with FULL the log "
            "names them itself: "
            f"{facts.set_variable} binlog_row_metadata = 'FULL';"
        )
    if completes:
        pass
    elif facts.binlog_row_image == NODUP:
        yield (
            f"binlog_row_image is {NODUP}: an update has changed columns alone: nothing can be applied again from "
            f"an earlier position: {facts.set_variable} binlog_row_image = 'FULL';"
        )
    elif facts.binlog_row_image != "FULL":
        yield (
            f"binlog_row_image is {facts.binlog_row_image}: the log does not have whole rows. Applying stops at an "
            "insert without a column whose default is not known, and at changes of tables without a primary key "
            "whose before image is partial; nothing can be applied again from an earlier position: "
            f"{facts.set_variable} binlog_row_image = 'FULL'; or set source.records.dir, with which the producer "
            "completes rows"
        )
    if facts.binlog_row_value_options and not completes:
        yield (
            "binlog_row_value_options is PARTIAL_JSON: reading stops at a document whose old value a session with "
            "binlog_row_image=MINIMAL did not log: SET PERSIST binlog_row_value_options = '';"
        )
    if facts.binlog_format != "ROW":
        yield (
            f"binlog_format is {facts.binlog_format}: changes logged as statements are published as statements, "
            "which a MySQL target alone applies, with target.statements: execute: "
            f"{facts.set_variable} binlog_format = 'ROW';"
        )


def _fired_triggers(connection: Connection, filter: Filter) -> Iterator[str]:
    """The triggers that statements fire, as far as the user may see them."""
    found = query(
        connection,
        "SELECT EVENT_OBJECT_SCHEMA AS s, EVENT_OBJECT_TABLE AS t, TRIGGER_NAME AS n FROM information_schema.TRIGGERS "
        "ORDER BY 1, 2, 3",
    )
    names = [f"{row['s']}.{row['t']}.{row['n']}" for row in found if filter.captures(str(row["s"]), str(row["t"]))]
    if names:
        shown = ", ".join(names[:NAMED_CASCADES]) + (", …" if len(names) > NAMED_CASCADES else "")
        yield (
            f"changes logged as statements fire triggers of captured tables: {shown}. A target that executes "
            "statements needs the same ones, and gets only those whose creation is in the log: create the others there"
        )


def _one_of(problems: list[PreflightError]) -> PreflightError:
    if len(problems) == 1:
        return problems[0]
    listed = "".join(
        f"\n  {number}. {problem.located}\n     {problem.hint}" for number, problem in enumerate(problems, 1)
    )
    error = PreflightError(f"{len(problems)} prerequisites are missing on the source:{listed}")
    error.problems = tuple(problems)
    return error
