"""Checks that changes which the source replicates from other servers are in its binary log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pymysql

from connector.errors import PreflightError
from connector.mysql.server.connection import Connection, Row, query
from connector.mysql.server.source_facts import SourceFacts

DENIED: Final = 1227  # SHOW ALL SLAVES STATUS without SLAVE MONITOR
RULES: Final = ("Do_DB", "Ignore_DB", "Do_Table", "Ignore_Table", "Wild_Do_Table", "Wild_Ignore_Table")


def unlogged_replication(connection: Connection, facts: SourceFacts) -> Iterator[PreflightError]:
    """Reports replication whose changes the source does not log."""
    if facts.logs_replicated:
        return
    name = facts.logs_replicated_by
    hint = f"start the server with {name} = ON (needs a restart), then begin a new log (another `service`)"
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
    found = {rule for row in _status(connection, facts) for rule in RULES if row.get(f"Replicate_{rule}")}
    return ", ".join(f"replicate_{rule.lower()}" for rule in RULES if rule in found)


def own_log_rules(row: Row) -> dict[str, str]:
    """The filters of a server's own log, from its status."""
    names = ("Binlog_Do_DB", "Binlog_Ignore_DB")
    return {name.lower(): str(row[name]) for name in names if row.get(name)}


def _sources(connection: Connection, facts: SourceFacts) -> list[str]:
    if not facts.mariadb:
        return [_host(row) for row in _status(connection, facts)]
    try:
        return [_host(row) for row in query(connection, "SHOW ALL SLAVES STATUS")]
    except pymysql.OperationalError as error:
        if error.args[0] != DENIED:
            raise
    # Visible to every user; nothing is replicated while this is 0.
    (running,) = query(connection, "SHOW GLOBAL STATUS LIKE 'Slaves_running'")
    return ["another server"] if int(running["Value"]) else []


def _status(connection: Connection, facts: SourceFacts) -> list[Row]:
    return query(connection, "SHOW REPLICA STATUS" if facts.shows_replicas else "SHOW SLAVE STATUS")


def _host(row: Row) -> str:
    return str(row.get("Source_Host") or row.get("Master_Host") or "another server")
