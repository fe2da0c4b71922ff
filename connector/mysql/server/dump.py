"""Opens the source's binary log as a replica and reads its bytes.

The connection is pymysql's; private methods are used, because no public one sends a command. The registration packet
is mysql-replication's. The dump command is built here, because mysql-replication's stream reader cannot name tagged
GTIDs (MySQL 8.3+), opens on its first read only, and reconnects by itself, also inside of a transaction. After the
command this module reads the socket; pymysql's buffer is empty then, because every answer before was read to its end.
"""

from __future__ import annotations

import logging
import struct
import uuid
from contextlib import closing
from typing import Final

from pymysql.constants import COMMAND
from pymysqlreplication.binlogstream import ReportSlave

from connector.clock import Clock, SystemClock
from connector.config.source import Source
from connector.errors import ConnectorError, PreflightError, SourceUnavailable
from connector.log.gtid.mysql import GtidSet
from connector.log.transaction.position import AfterGtids, StreamStart
from connector.mysql.server import mariadb_state, semi_sync
from connector.mysql.server.connection import Connection, connect, query, source_errors
from connector.mysql.server.gtid_set import encode_gtid_set
from connector.mysql.server.semi_sync import SemiSyncAcknowledger
from connector.mysql.server.shared_socket import SharedSocket
from connector.mysql.server.source_facts import read_facts
from connector.mysql.server.source_state import sessions

LOG: Final = logging.getLogger(__name__)

END_TIMEOUT = 3  # seconds for the session that ends a dump thread
HEARTBEAT_V2 = 0x02  # flag of the dump: heartbeats with offsets beyond 4 GiB
THROUGH_GTID = 0x04
FILE_START = 4
SILENCE = 2  # heartbeats that may be late
NAMESPACE = uuid.UUID("6c0e5f8e-31c9-4c6e-9a4b-7d1d2f0b9a11")  # of generated replica UUIDs


class PacketSource:
    """The connection of a running dump.

    Args:
        connection: pymysql's, after the dump command.
        thread: the server's thread of it.
        source: the server.
        clock: measures silence.
    """

    def __init__(self, connection: Connection, thread: int, source: Source, clock: Clock) -> None:
        self._connection = connection
        self._thread: int | None = thread
        self._source = source
        self._socket = connection._sock  # type: ignore[attr-defined]
        self._silence = SILENCE * source.dump_heartbeat + 1
        self._clock = clock
        self._last_packet = clock.monotonic()
        self._timeout = -1.0

    def receive(self, into: memoryview, timeout: float) -> int | None:
        """Fills `into`; see `ByteSource`.

        Raises:
            SourceUnavailable: the connection is lost, or has been silent for more than two heartbeats.
        """
        if timeout != self._timeout:
            self._socket.settimeout(timeout)
            self._timeout = timeout
        try:
            size = int(self._socket.recv_into(into))
        except TimeoutError:
            silence = self._clock.monotonic() - self._last_packet
            if silence > self._silence:
                raise self._lost(f"the source has been silent for {silence:.1f} s") from None
            return None
        except OSError as error:
            raise self._lost(f"the connection to the source is lost: {error}") from error
        if size == 0:
            raise self._lost("the source closed the connection")
        self._last_packet = self._clock.monotonic()
        return size

    def close(self) -> None:
        """Closes the connection, and ends the server's thread of it. May be repeated.

        A dumping server reads no commands, so none can end it. It would notice the closed connection only when a
        heartbeat cannot be sent, mostly the second one; until then the replica would look registered.
        """
        self._connection._force_close()  # type: ignore[attr-defined]
        thread, self._thread = self._thread, None
        if thread is not None:
            _end_thread(self._source, thread)

    def _lost(self, why: str) -> SourceUnavailable:
        self._thread = None  # a server that does not answer cannot be asked to end it
        return SourceUnavailable(why)


def replica_uuid(service: str, source: Source) -> str:
    """The replica UUID of a service, by which the preflight distinguishes two services with the same server_id."""
    return str(uuid.uuid5(NAMESPACE, f"{service}/{source.server_id}"))


def open_stream(
    source: Source,
    start: StreamStart,
    clock: Clock | None = None,
    *,
    service: str = "",
    acknowledger: SemiSyncAcknowledger | None = None,
) -> PacketSource:
    """Connects, registers as a replica and requests the binary log.

    Args:
        source: the server.
        start: the start of the stream.
        clock: measures silence.
        service: determines the replica UUID.
        acknowledger: acknowledges on this connection, so the dump is semi-synchronous; None: an ordinary one.

    Raises:
        SourceUnavailable: the server does not answer.
        PreflightError: it refuses the user, or the position cannot be requested.
        Unsupported: the GTID set is invalid.

    A purged position is reported by the first received packet, not here.
    """
    connection = connect(source)
    try:
        with source_errors(source):
            command, body = _dump(source, start, mariadb=mariadb_state.is_mariadb(connection))
            thread = _prepare(connection, source, replica_uuid(service, source))
            if mariadb_state.is_mariadb(connection):
                mariadb_state.ask(connection, start.gtid_set if isinstance(start, AfterGtids) else None)
                mariadb_state.mark_dump(connection, source.server_id)
            _register(connection, source)
            if acknowledger is not None:
                server_uuid = read_facts(connection).server_uuid
                semi_sync.ask(connection)
            connection._execute_command(command, body)  # type: ignore[attr-defined]
            if acknowledger is not None:
                shared = SharedSocket(connection._sock)  # type: ignore[attr-defined]
                connection._sock = shared  # type: ignore[attr-defined]
                acknowledger.connected(shared, server_uuid)
    except BaseException:
        connection._force_close()  # type: ignore[attr-defined]
        raise
    return PacketSource(connection, thread, source, clock or SystemClock())


def _end_thread(source: Source, thread: int) -> None:
    """Ends a dump thread of this user, by another session; a user may end threads of its own without a privilege."""
    try:
        with closing(connect(source, patience=END_TIMEOUT)) as connection, source_errors(source):
            # Behind the same name there may be another server by now, whose thread of this number is another.
            for row in sessions(connection):
                if row["Id"] == thread and row["User"] == source.user and row["Command"].startswith("Binlog Dump"):
                    query(connection, f"KILL {thread}")
    except ConnectorError as error:
        LOG.info(
            "the source may show this replica until it has noticed its end",
            extra={"source_thread": thread, "why": error},
        )


def _prepare(connection: Connection, source: Source, name: str) -> int:
    """Sets the user variables that the dump thread reads, under the names of older and newer servers.

    Returns:
        The thread.
    """
    beat = int(source.dump_heartbeat * 1_000_000_000)
    query(
        connection,
        "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, @source_binlog_checksum = @@GLOBAL.binlog_checksum, "
        "@master_heartbeat_period = %s, @source_heartbeat_period = %s, @slave_uuid = %s, @replica_uuid = %s",
        (beat, beat, name, name),
    )
    query(connection, "SET SESSION net_write_timeout = %s", (source.net_write_timeout,))
    return int(query(connection, "SELECT CONNECTION_ID() AS thread")[0]["thread"])


def _register(connection: Connection, source: Source) -> None:
    """Registers as a replica, for SHOW REPLICAS on the source."""
    packet = ReportSlave(("thl-connector", "", "", 0)).encoded(source.server_id)
    connection._execute_command(packet[4], packet[5:])  # type: ignore[attr-defined]
    connection._read_packet()  # type: ignore[no-untyped-call]


def _dump(source: Source, start: StreamStart, *, mariadb: bool = False) -> tuple[int, bytes]:
    """The dump command and its body, little-endian."""
    if isinstance(start, AfterGtids) and mariadb:
        return COMMAND.COM_BINLOG_DUMP, mariadb_state.dump_body(source.server_id, None)
    if isinstance(start, AfterGtids):
        known = encode_gtid_set(GtidSet.parse(start.gtid_set))
        head = struct.pack("<HIIQI", HEARTBEAT_V2 | THROUGH_GTID, source.server_id, 0, FILE_START, len(known))
        return COMMAND.COM_BINLOG_DUMP_GTID, head + known
    if start.offset >= 1 << 32:
        raise PreflightError(
            "a position beyond 4 GiB cannot be requested by file and offset",
            hint="start from a GTID set, or from the next file: source.start",
            start=start,
        )
    if mariadb:
        return COMMAND.COM_BINLOG_DUMP, mariadb_state.dump_body(source.server_id, start)
    return COMMAND.COM_BINLOG_DUMP, (
        struct.pack("<IHI", start.offset, HEARTBEAT_V2, source.server_id) + start.file.encode()
    )
