"""Semi-synchronous replication: the source's settings and state, and a replica's acknowledgements.

With it, a commit on the source waits until a replica has acknowledged the transaction. A replica asks for it by a user
variable before its dump command. Then every event has a header (`connector.mysql.binlog.frames.SemiSyncFrames`), and
the replica sends acknowledgements on the same connection: a packet with the number 0 that names a position in the
binary log, which acknowledges everything before it. The source accepts positions that it did not ask about, too.
"""

from __future__ import annotations

import logging
import struct
from dataclasses import dataclass
from threading import Lock
from typing import Final

from connector.log.transaction.position import PositionRecord
from connector.mysql.server.connection import Connection, query
from connector.mysql.server.shared_socket import SharedSocket

LOG: Final = logging.getLogger(__name__)
MAGIC: Final = 0xEF  # of an acknowledgement
NAMES: Final = ("source", "master")  # the plugin of MySQL 8.0.26; the one before it, and MariaDB's
AFTER_SYNC: Final = "AFTER_SYNC"


@dataclass(frozen=True, slots=True, kw_only=True)
class SemiSyncSettings:
    """The source's settings.

    Args:
        plugin: the common part of their names: rpl_semi_sync_source or rpl_semi_sync_master.
        enabled: true if commits wait for acknowledgements.
        wait_point: AFTER_SYNC: a commit waits before its changes are visible; AFTER_COMMIT: after that; "": the server
            is too old for a choice, and waits after it.
        timeout: milliseconds after which a commit no longer waits, and the server becomes asynchronous.
        waits_without_replica: true if a commit also waits while no replica is connected.
        needed: the number of replicas whose acknowledgement a commit waits for; always 1 in MariaDB.
    """

    plugin: str
    enabled: bool
    wait_point: str
    timeout: int
    waits_without_replica: bool
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SemiSyncState:
    """The source's state.

    Args:
        plugin, enabled, needed: see `SemiSyncSettings`.
        on: true while commits wait; false after a timeout, until a replica has caught up, and while it is not enabled.
        replicas: the number of connected semi-synchronous replicas.
        waited: the number of commits that were acknowledged, since the server's start.
        not_waited: the number of commits that were not.
    """

    plugin: str
    enabled: bool
    on: bool
    replicas: int
    needed: int
    waited: int
    not_waited: int


def read_settings(connection: Connection) -> SemiSyncSettings | None:
    """Read the source's settings; None if it has no semi-synchronous replication."""
    rows = query(connection, "SHOW GLOBAL VARIABLES LIKE 'rpl\\_semi\\_sync\\_%'")
    value = {str(row["Variable_name"]).lower(): str(row["Value"]) for row in rows}
    for name in NAMES:
        plugin = f"rpl_semi_sync_{name}"
        if f"{plugin}_enabled" in value:
            replica = "replica" if name == "source" else "slave"
            return SemiSyncSettings(
                plugin=plugin,
                enabled=value[f"{plugin}_enabled"].upper() == "ON",
                wait_point=value.get(f"{plugin}_wait_point", "").upper(),
                timeout=int(value[f"{plugin}_timeout"]),
                waits_without_replica=value[f"{plugin}_wait_no_{replica}"].upper() == "ON",
                needed=int(value.get(f"{plugin}_wait_for_{replica}_count", "1")),
            )
    return None


def read_state(connection: Connection) -> SemiSyncState | None:
    """Read the source's state; None if it has no semi-synchronous replication."""
    settings = read_settings(connection)
    if settings is None:
        return None
    rows = query(connection, "SHOW GLOBAL STATUS LIKE 'Rpl\\_semi\\_sync\\_%'")
    value = {str(row["Variable_name"]).lower(): str(row["Value"]) for row in rows}
    return SemiSyncState(
        plugin=settings.plugin,
        enabled=settings.enabled,
        on=settings.enabled and value[f"{settings.plugin}_status"].upper() == "ON",
        replicas=int(value[f"{settings.plugin}_clients"]),
        needed=settings.needed,
        waited=int(value[f"{settings.plugin}_yes_tx"]),
        not_waited=int(value[f"{settings.plugin}_no_tx"]),
    )


def semi_sync_problem(state: SemiSyncState | None, *, connected: bool) -> str:
    """Why a commit does not wait for this replica's acknowledgement; "": it does.

    Args:
        state: the source's state; None: it has no semi-synchronous replication.
        connected: true if this replica is one of the connected ones.
    """
    if state is None:
        return "the source has no semi-synchronous replication"
    if not state.enabled:
        return f"on the source {state.plugin}_enabled is OFF: SET GLOBAL {state.plugin}_enabled = ON"
    if not state.on:
        return "its semi-synchronous replication is OFF, until this producer has caught up"
    if state.replicas - connected >= state.needed:
        return (
            f"it waits for {state.needed} of its {state.replicas} semi-synchronous replicas, so the acknowledgement of "
            "another one can be enough"
        )
    return ""


def ask(connection: Connection) -> None:
    """Set the variables by which a dump becomes semi-synchronous, under the names of newer and older servers."""
    query(connection, "SET @rpl_semi_sync_replica = 1, @rpl_semi_sync_slave = 1")


class SemiSyncAcknowledger:
    """Acknowledges what Kafka has on the dump's connection; implements `Acknowledger` of the publisher.

    The newest position is kept: a new connection begins by acknowledging it.

    Args:
        service: the service, for log lines.
    """

    def __init__(self, service: str) -> None:
        self._service = service
        self._lock = Lock()
        self._connection: SharedSocket | None = None
        self._server = ""
        self._committed: PositionRecord | None = None

    def connected(self, connection: SharedSocket, server_uuid: str) -> None:
        """Acknowledge on this connection from now on.

        Args:
            connection: of a semi-synchronous dump.
            server_uuid: the server that dumps: positions of another server mean nothing to it.
        """
        with self._lock:
            self._connection, self._server = connection, server_uuid
            self._send()

    def acknowledge(self, position: PositionRecord) -> None:
        """See `Acknowledger`."""
        with self._lock:
            self._committed = position
            self._send()

    def _send(self) -> None:
        position, connection = self._committed, self._connection
        if connection is None or position is None or position.snapshot or not position.resume.file:
            return
        if position.server_uuid != self._server:
            return
        try:
            connection.send(acknowledgement(position.resume.file, position.resume.offset))
        except OSError as error:
            self._connection = None
            LOG.debug(
                "not acknowledged: the connection to the source is lost",
                extra={"service": self._service, "position": position.resume, "why": error},
            )


def acknowledgement(file: str, offset: int) -> bytes:
    """Return the packet that acknowledges a position."""
    body = struct.pack("<BQ", MAGIC, offset) + file.encode()
    return struct.pack("<I", len(body)) + body  # three bytes length, and the packet number 0
