"""Checks a source that replicates from other servers: that their changes are in its binary log, and how far it lags."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pymysql

from connector.config.source import Source
from connector.errors import MissingPrivilege, PreflightError
from connector.log.rules import NEW_LOG
from connector.mysql.server.connection import Connection, Row, account, query
from connector.mysql.server.replication_status import DENIED, host_of, replication_channels, replication_status
from connector.mysql.server.source_facts import SourceFacts
from connector.mysql.snapshot.load_conditions import stopped_channel

RULES: Final = ("Do_DB", "Ignore_DB", "Do_Table", "Ignore_Table", "Wild_Do_Table", "Wild_Ignore_Table")


def unlogged_replication(connection: Connection, facts: SourceFacts) -> Iterator[PreflightError]:
    """Reports replication whose changes the source does not log."""
    if facts.logs_replicated:
        return
    name = facts.logs_replicated_by
    hint = f"start the server with {name} = ON (needs a restart), then {NEW_LOG}"
    if facts.galera:
        yield PreflightError(
            "changes by other nodes of the source's cluster (wsrep_on) are not in its binary log",
            hint=hint,
            setting=name,
            found="OFF",
        )
    for host in _sources(connection, facts):
        yield PreflightError(
            "changes that the source replicates are not in its binary log",
            hint=hint,
            setting=name,
            found="OFF",
            replicates_from=host,
        )


def check_replication(connection: Connection, facts: SourceFacts) -> None:
    """Checks that the server does not replicate without logging.

    Raises:
        PreflightError: the server applies changes of another server and does not write them to its own log.
    """
    problem = next(unlogged_replication(connection, facts), None)
    if problem is not None:
        raise problem


def replication_rules(connection: Connection, facts: SourceFacts) -> str:
    """The names of a replica's filters; "": it has none."""
    if facts.mariadb:
        rows = query(connection, "SHOW GLOBAL VARIABLES LIKE 'replicate\\_%'")
        return ", ".join(
            str(row["Variable_name"])
            for row in rows
            if row["Value"] and str(row["Variable_name"]).endswith(tuple(rule.lower() for rule in RULES))
        )
    found = {rule for row in replication_status(connection) for rule in RULES if row.get(f"Replicate_{rule}")}
    return ", ".join(f"replicate_{rule.lower()}" for rule in RULES if rule in found)


def unseen_lag(connection: Connection, facts: SourceFacts, source: Source) -> Iterator[PreflightError]:
    """Reports that the user may not see how far the source lags, if loads depend on it.

    MySQL shows it with REPLICATION CLIENT, which is needed in any case.
    """
    if source.snapshot.max_replica_lag is None or not facts.mariadb:
        return
    try:
        replication_status(connection)
    except pymysql.OperationalError as error:
        if error.args[0] != DENIED:
            raise
        yield MissingPrivilege(
            "the user lacks SLAVE MONITOR: the source does not show how far it lags, on which a load depends by "
            "source.snapshot.max_replica_lag",
            hint=f"GRANT SLAVE MONITOR ON *.* TO {account(source.user)}; or unset source.snapshot.max_replica_lag",
        )


def stopped_replication(connection: Connection, source: Source) -> Iterator[str]:
    """Warns of replication that does not run, if loads wait for it."""
    most = source.snapshot.max_replica_lag
    if most is not None and (pause := stopped_channel(replication_channels(connection), most)):
        yield f"no round of a load can begin: {pause.why}: {pause.hint}"


def own_log_rules(row: Row) -> dict[str, str]:
    """The filters of a server's own log, from its status."""
    names = ("Binlog_Do_DB", "Binlog_Ignore_DB")
    return {name.lower(): str(row[name]) for name in names if row.get(name)}


def _sources(connection: Connection, facts: SourceFacts) -> list[str]:
    try:
        return [host_of(row) for row in replication_status(connection)]
    except pymysql.OperationalError as error:
        if not facts.mariadb or error.args[0] != DENIED:
            raise
    # Visible to every user; nothing is replicated while this is 0.
    (running,) = query(connection, "SHOW GLOBAL STATUS LIKE 'Slaves_running'")
    return ["another server"] if int(running["Value"]) else []
