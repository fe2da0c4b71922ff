"""Opens the source's binary log as a replica does, and gives its bytes.

The connection is pymysql's, of which private methods are used, since it has no others that send a command; the
registration packet is mysql-replication's. The dump command is built here, because mysql-replication's stream reader
cannot name tagged GTIDs (MySQL 8.3+), opens only on its first read, and connects again by itself when the connection
is lost, in the middle of a transaction too. After the command the socket is ours: nothing goes through pymysql's
reader any more, whose buffer is empty then, because the server is silent until it is asked and every answer before
was read to its end.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass
from typing import Protocol

from pymysql.constants import COMMAND
from pymysqlreplication.binlogstream import ReportSlave

from connector.clock import Clock, SystemClock
from connector.config.model import Source
from connector.errors import PreflightError, SourceUnavailable
from connector.log.gtid.mysql import GtidSet
from connector.log.transaction.position import SourcePosition
from connector.mysql.server import mariadb_state
from connector.mysql.server.connection import Connection, connect, query, speaking_to
from connector.mysql.server.gtid_set import encode_gtid_set

HEARTBEAT_V2 = 0x02  # flag of the dump: heartbeats that hold places beyond 4 GiB
THROUGH_GTID = 0x04
FILE_START = 4
SILENCE = 2  # heartbeats that may be missing
NAMESPACE = uuid.UUID("6c0e5f8e-31c9-4c6e-9a4b-7d1d2f0b9a11")  # of the replica uuids made here


@dataclass(frozen=True, slots=True)
class AfterGtids:
    """Start with the first transaction that is not in this set (MySQL's or MariaDB's text form)."""

    gtid_set: str


StreamStart = AfterGtids | SourcePosition


class ByteSource(Protocol):
    """Gives the bytes that frames are cut from."""

    def receive(self, into: memoryview, timeout: float) -> int | None:
        """Fill `into` with what is there; wait for the first byte at most `timeout` seconds.

        Returns:
            How many bytes; None when none came in time; 0 when no more will come.
        """

    def close(self) -> None:
        """Give up what is held."""


class PacketSource:
    """The connection of a running dump.

    Args:
        connection: pymysql's, after the dump command.
        heartbeat: seconds after which the server speaks even without news.
        clock: to measure silence.
    """

    def __init__(self, connection: Connection, heartbeat: float, clock: Clock) -> None:
        self._connection = connection
        self._socket = connection._sock  # type: ignore[attr-defined]
        self._silence = SILENCE * heartbeat + 1
        self._clock = clock
        self._heard = clock.monotonic()
        self._timeout = -1.0

    def receive(self, into: memoryview, timeout: float) -> int | None:
        """Fill `into`, as `ByteSource` says.

        Raises:
            SourceUnavailable: the connection is lost, or has been silent for more than two heartbeats.
        """
        if timeout != self._timeout:
            self._socket.settimeout(timeout)
            self._timeout = timeout
        try:
            size = int(self._socket.recv_into(into))
        except TimeoutError:
            silence = self._clock.monotonic() - self._heard
            if silence > self._silence:
                raise SourceUnavailable(f"the source has been silent for {silence:.1f} s") from None
            return None
        except OSError as error:
            raise SourceUnavailable(f"the connection to the source is lost: {error}") from error
        if size == 0:
            raise SourceUnavailable("the source closed the connection")
        self._heard = self._clock.monotonic()
        return size

    def close(self) -> None:
        """Close the connection without a word: the server would not hear it before its next write."""
        self._connection._force_close()  # type: ignore[attr-defined]


def replica_uuid(service: str, source: Source) -> str:
    """Who we are to the source: two services with one server_id are two replicas, and the preflight tells so."""
    return str(uuid.uuid5(NAMESPACE, f"{service}/{source.server_id}"))


def open_stream(source: Source, start: StreamStart, clock: Clock | None = None, *, service: str = "") -> PacketSource:
    """Connect, register as a replica, and ask for the binary log.

    Args:
        source: the server.
        start: where to begin.
        clock: measures silence.
        service: whose producer asks.

    Raises:
        SourceUnavailable: the server does not answer.
        PreflightError: it refuses the user, or the place cannot be asked for.
        Unsupported: the GTID set is none.

    That the place is purged is told by the first `receive`d packet, not here.
    """
    connection = connect(source)
    try:
        with speaking_to(source):
            command, body = _dump(source, start, mariadb=mariadb_state.is_mariadb(connection))
            _prepare(connection, source, replica_uuid(service, source))
            if mariadb_state.is_mariadb(connection):
                mariadb_state.ask(connection, start.gtid_set if isinstance(start, AfterGtids) else None)
            _register(connection, source)
            connection._execute_command(command, body)  # type: ignore[attr-defined]
    except BaseException:
        connection._force_close()  # type: ignore[attr-defined]
        raise
    return PacketSource(connection, source.dump_heartbeat, clock or SystemClock())


def _prepare(connection: Connection, source: Source, name: str) -> None:
    """What the dump thread reads from its session; under both names, the older servers' and the newer ones'."""
    beat = int(source.dump_heartbeat * 1_000_000_000)
    query(
        connection,
        "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, @source_binlog_checksum = @@GLOBAL.binlog_checksum, "
        "@master_heartbeat_period = %s, @source_heartbeat_period = %s, @slave_uuid = %s, @replica_uuid = %s",
        (beat, beat, name, name),
    )
    query(connection, "SET SESSION net_write_timeout = %s", (source.net_write_timeout,))


def _register(connection: Connection, source: Source) -> None:
    """So that SHOW REPLICAS on the source shows us."""
    packet = ReportSlave(("thl-connector", "", "", 0)).encoded(source.server_id)
    connection._execute_command(packet[4], packet[5:])  # type: ignore[attr-defined]
    connection._read_packet()  # type: ignore[no-untyped-call]


def _dump(source: Source, start: StreamStart, *, mariadb: bool = False) -> tuple[int, bytes]:
    """The command and its body, all little-endian."""
    if isinstance(start, AfterGtids) and mariadb:
        return COMMAND.COM_BINLOG_DUMP, mariadb_state.dump_body(source.server_id, None)
    if isinstance(start, AfterGtids):
        known = encode_gtid_set(GtidSet.parse(start.gtid_set))
        head = struct.pack("<HIIQI", HEARTBEAT_V2 | THROUGH_GTID, source.server_id, 0, FILE_START, len(known))
        return COMMAND.COM_BINLOG_DUMP_GTID, head + known
    if start.offset >= 1 << 32:
        raise PreflightError(
            "a place beyond 4 GiB cannot be asked for by file and offset",
            hint="start from a GTID set, or from the next file",
            start=start,
        )
    if mariadb:
        return COMMAND.COM_BINLOG_DUMP, mariadb_state.dump_body(source.server_id, start)
    return COMMAND.COM_BINLOG_DUMP, (
        struct.pack("<IHI", start.offset, HEARTBEAT_V2, source.server_id) + start.file.encode()
    )
