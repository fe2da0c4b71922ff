"""The channels by which a server replicates from others, and how far each lags, as the server itself says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from connector.mysql.server.connection import Connection, Row, query, release
from connector.mysql.server.mariadb_state import is_mariadb
from connector.mysql.server.source_facts import SHOW_REPLICAS

DENIED: Final = 1227  # SHOW ALL SLAVES STATUS without SLAVE MONITOR, on MySQL without REPLICATION CLIENT
# A member of a group may show the second one, stopped, long after it has joined.
OF_GROUPS: Final = frozenset({"group_replication_applier", "group_replication_recovery"})


@dataclass(frozen=True, slots=True)
class ReplicationChannel:
    """A channel of MySQL, or a connection of MariaDB, by which a server replicates.

    Args:
        name: its name; "": it has none.
        host: the server from which it replicates, host:port.
        lag: seconds behind that server, a configured delay included; None: unknown, since a thread does not run.
        threads: the states of its threads, under the names of the server's status.
    """

    name: str
    host: str
    lag: float | None
    threads: str

    def __str__(self) -> str:
        """The channel for people."""
        return f"{self.host}, channel {self.name}" if self.name else self.host


def replication_status(connection: Connection) -> list[Row]:
    """The server's status of each channel; none if it is no replica.

    Raises:
        pymysql.OperationalError: DENIED: the user may not see it.
    """
    if is_mariadb(connection):
        return query(connection, "SHOW ALL SLAVES STATUS")
    modern = release(connection) >= SHOW_REPLICAS
    return query(connection, "SHOW REPLICA STATUS" if modern else "SHOW SLAVE STATUS")


def replication_channels(connection: Connection) -> list[ReplicationChannel]:
    """The channels by which a server replicates, without those of Group Replication, which paces its members itself.

    Raises:
        pymysql.OperationalError: DENIED: the user may not see them.
    """
    return list(channels_of(replication_status(connection)))


def channels_of(rows: list[Row]) -> Iterator[ReplicationChannel]:
    """The channels of a status."""
    for row in rows:
        name = str(row.get("Channel_Name") or row.get("Connection_name") or "")
        if name.lower() in OF_GROUPS:
            continue
        lag = row.get("Seconds_Behind_Source", row.get("Seconds_Behind_Master"))
        threads = ", ".join(
            f"{thread}: {row[thread]}"
            for word in ("Replica", "Slave")
            for thread in (f"{word}_IO_Running", f"{word}_SQL_Running")
            if thread in row
        )
        yield ReplicationChannel(name, f"{host_of(row)}:{port_of(row)}", None if lag is None else float(lag), threads)


def host_of(row: Row) -> str:
    """The server from which a channel replicates."""
    return str(row.get("Source_Host") or row.get("Master_Host") or "another server")


def port_of(row: Row) -> int:
    """Its port."""
    return int(row.get("Source_Port") or row.get("Master_Port") or 0)
