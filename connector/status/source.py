"""The source's side: how far its binary log goes, who reads it, and how long it keeps what is needed next."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from connector.config.model import Source
from connector.log.transaction.position import SourcePosition
from connector.mysql.server.connection import Connection, connect, query, speaking_to
from connector.mysql.server.source_facts import read_facts
from connector.mysql.server.source_state import binary_logs, end_position, gtid_executed


@dataclass(frozen=True, slots=True)
class SourceView:
    """What the source says.

    Args:
        end: of its binary log.
        gtid_set: what it executed; None where it gives no GTIDs.
        read: whether a replica with our server_id is registered; of a MariaDB, whether our user reads the log.
        files: of its binary log, oldest first.
        expire_seconds: how long after its last event it keeps a file; 0: for ever.
    """

    end: SourcePosition
    gtid_set: str | None
    read: bool
    files: tuple[str, ...]
    expire_seconds: int

    def seconds_until_purge(self, file: str, last_commit: int | None, now: int) -> float | None:
        """How long `file` is there at least.

        A file is purged so many seconds after it was last written to, which was not before our last event in it; the
        newest file is never purged.

        Args:
            file: what is needed next.
            last_commit: when the last event that we have from it was committed, µs.
            now: µs.
        """
        if not self.expire_seconds or last_commit is None:
            return None
        if file not in self.files:
            return 0.0
        if file == self.files[-1]:
            return float(self.expire_seconds)
        return last_commit / 1e6 + self.expire_seconds - now / 1e6


def read_source(source: Source) -> SourceView:
    """Ask it.

    Raises:
        SourceUnavailable: it does not answer.
        PreflightError: it refuses us.
    """
    with closing(connect(source)) as connection, speaking_to(source):
        facts = read_facts(connection)
        return SourceView(
            end=end_position(connection),
            gtid_set=gtid_executed(connection),
            read=_is_read_by_user(connection)
            if facts.mariadb
            else _is_read(connection, source.server_id, modern=facts.shows_replicas),
            files=tuple(file for file, _ in binary_logs(connection)),
            expire_seconds=facts.expire_seconds,
        )


def _is_read(connection: Connection, server_id: int, *, modern: bool) -> bool:
    rows = query(connection, "SHOW REPLICAS" if modern else "SHOW SLAVE HOSTS")
    return any(int(row["Server_Id" if modern else "Server_id"]) == server_id for row in rows)


def _is_read_by_user(connection: Connection) -> bool:
    """MariaDB shows its replicas to administrators only; its own threads it shows to everybody."""
    threads = "SELECT 1 FROM information_schema.processlist WHERE command = 'Binlog Dump'"
    return bool(query(connection, f"{threads} AND user = SUBSTRING_INDEX(USER(), '@', 1)"))
