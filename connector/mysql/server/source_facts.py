"""What the source says of itself, read once at every start."""

from __future__ import annotations

import re
from dataclasses import dataclass

from connector.errors import PreflightError
from connector.mysql.server.connection import Connection, query

OLDEST = (5, 6)
NAMES_SINCE = (8, 0)  # before, the log tells of columns their types alone, and variables are set until a restart
FLUSH_TABLES_SINCE = (8, 0, 23)  # a privilege that is less than RELOAD
OLDEST_MARIADB = (10, 5)
CASCADES_LOGGED_SINCE = (9, 6)
SHOW_REPLICAS = (8, 0, 22)
DAY = 86400
OLD_MODE_UTF8 = (10, 6, 1)  # before, utf8 is utf8mb3 in every MariaDB

# A MariaDB has no UUID. Its server_id names it in every GTID that it writes, and no two servers of one replication may
# share it; hostname and server_uid change when a container is made anew. Two servers that do share one are taken for
# one: then what their logs hold must agree in every place, or going online is refused.
MARIADB = "mariadb"

VARIABLES = (
    "binlog_checksum",
    "binlog_error_action",
    "binlog_expire_logs_seconds",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_row_value_options",
    "expire_logs_days",
    "explicit_defaults_for_timestamp",
    "gtid_mode",
    "gtid_strict_mode",
    "innodb_flush_log_at_trx_commit",
    "innodb_native_foreign_keys",
    "log_bin",
    "log_replica_updates",
    "log_slave_updates",
    "lower_case_table_names",
    "old_mode",
    "server_id",
    "server_uuid",
    "sql_log_bin",
    "sync_binlog",
    "version",
    "wsrep_on",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """The server's identity and those of its settings that the producer depends on.

    Args:
        version: as the server writes it, e.g. `8.0.43-log`.
        release: the first three numbers of it.
        lower_case_table_names: 0 when names differ by case alone.
        expire_seconds: after this long the server removes a binary log; 0: never.
        binlog_row_metadata: NONE of a server that has no such variable: MySQL before 8.0.
        mariadb: whether it is a MariaDB.
        implicit_timestamps: of a MySQL before 8.0: whether a TIMESTAMP is NOT NULL that is not said to be NULL
            (explicit_defaults_for_timestamp=OFF, the default): its log does not tell it.
        logs_replicated: whether what it takes from another server is in its log, too.
        galera: whether it is a node of a Galera cluster.
        logs_sessions: whether new sessions write to the binary log; a MySQL before 5.7 can have it off for all.
        stops_without_log: whether it stops where it cannot write its binary log, instead of going on without one; a
            MariaDB does not say.
        gtid_strict_mode: of a MariaDB: whether the numbers of a domain can only grow.
        utf8_is_utf8mb3: whether a definition that says `utf8` means utf8mb3: of a MariaDB its `old_mode` tells (10.6).
        cascades_logged: whether changes by foreign keys' actions stand in the binary log (MySQL 9.6 and later do the
            actions above the storage engine; `innodb_native_foreign_keys` puts them back into it).
        warnings: what is allowed but weakens a promise; each a sentence with the statement that mends it.
    """

    server_uuid: str
    server_id: int
    version: str
    release: tuple[int, ...]
    gtid_mode: str
    lower_case_table_names: int
    expire_seconds: int
    log_bin: bool
    binlog_format: str
    binlog_row_image: str
    binlog_row_metadata: str
    binlog_row_value_options: str
    binlog_checksum: str
    sync_binlog: int
    flush_log_at_commit: int
    cascades_logged: bool
    mariadb: bool = False
    implicit_timestamps: bool = False
    logs_replicated: bool = True
    galera: bool = False
    logs_sessions: bool = True
    stops_without_log: bool = True
    gtid_strict_mode: bool = True
    utf8_is_utf8mb3: bool = True
    warnings: tuple[str, ...] = ()

    @property
    def gtids(self) -> bool:
        """Whether every transaction has a GTID."""
        return self.gtid_mode == "ON"

    @property
    def set_variable(self) -> str:
        """How a variable is set to stay; MariaDB and MySQL before 8.0 have to be told in the configuration too."""
        return "SET GLOBAL" if self.mariadb or not self.tells_names else "SET PERSIST"

    @property
    def tells_names(self) -> bool:
        """Whether its log can name columns at all; a MySQL before 8.0 cannot."""
        return self.mariadb or self.release >= NAMES_SINCE

    @property
    def logs_replicated_by(self) -> str:
        """The variable that says whether what it takes from another server is in its log."""
        return "log_replica_updates" if self.shows_replicas else "log_slave_updates"

    @property
    def server(self) -> str:
        """What it is, for people."""
        return f"{'MariaDB' if self.mariadb else 'MySQL'} {self.version}"

    @property
    def flush_privilege(self) -> str:
        """The least privilege that FLUSH TABLES WITH READ LOCK needs."""
        return "RELOAD" if self.mariadb or self.release < FLUSH_TABLES_SINCE else "FLUSH_TABLES"

    @property
    def unlogged_options(self) -> dict[str, str]:
        """Options of definitions that its log does not tell, as they are for every session that has not set them."""
        if self.tells_names:
            return {}
        return {"explicit_defaults_for_timestamp": "0" if self.implicit_timestamps else "1"}

    @property
    def shows_replicas(self) -> bool:
        """Whether it says SHOW REPLICAS, with a UUID each, to what older servers and MariaDB call SHOW SLAVE HOSTS."""
        return not self.mariadb and self.release >= SHOW_REPLICAS


def read_facts(connection: Connection) -> SourceFacts:
    """Ask the server.

    Raises:
        PreflightError: it is older than MySQL 5.6 or MariaDB 10.5.
    """
    names = ", ".join(f"'{name}'" for name in VARIABLES)
    rows = query(connection, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
    value = {row["Variable_name"]: str(row["Value"]) for row in rows}
    version = value["version"]
    release = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    mariadb = "mariadb" in version.lower()
    if mariadb and release < OLDEST_MARIADB:
        raise PreflightError(
            f"the source is MariaDB {version}; 10.5 is the oldest that tells column names in its binary log",
            hint="upgrade the server, or read from a replica of it that is 10.5 or newer",
        )
    if not mariadb and release < OLDEST:
        raise PreflightError(
            f"the source is MySQL {version}; 5.6 is the oldest whose log can be followed: with checksums, GTIDs and a "
            "consistent moment to begin at",
            hint="upgrade the server, or read from a replica of it that is 5.6 or newer; its files can be read: "
            "thl binlog FILE",
        )
    return SourceFacts(
        server_uuid=f"{MARIADB}-{value['server_id']}" if mariadb else value["server_uuid"],
        server_id=int(value["server_id"]),
        version=version,
        release=release,
        gtid_mode="ON" if mariadb else value["gtid_mode"].upper(),
        lower_case_table_names=int(value["lower_case_table_names"]),
        expire_seconds=int(value.get("binlog_expire_logs_seconds") or DAY * int(value.get("expire_logs_days", "0"))),
        log_bin=_on(value["log_bin"]),
        binlog_format=value["binlog_format"].upper(),
        binlog_row_image=value["binlog_row_image"].upper(),
        binlog_row_metadata=value.get("binlog_row_metadata", "NONE").upper(),
        binlog_row_value_options=value.get("binlog_row_value_options", "").upper(),
        binlog_checksum=value["binlog_checksum"].upper(),
        sync_binlog=int(value["sync_binlog"]),
        flush_log_at_commit=int(value["innodb_flush_log_at_trx_commit"]),
        cascades_logged=not mariadb
        and release >= CASCADES_LOGGED_SINCE
        and not _on(value.get("innodb_native_foreign_keys", "OFF")),
        mariadb=mariadb,
        implicit_timestamps=not mariadb
        and release < NAMES_SINCE
        and not _on(value.get("explicit_defaults_for_timestamp", "OFF")),
        logs_replicated=_on(value.get("log_replica_updates", value.get("log_slave_updates", "OFF"))),
        galera=_on(value.get("wsrep_on", "OFF")),
        logs_sessions=_on(value.get("sql_log_bin", "ON")),
        stops_without_log=value.get("binlog_error_action", "ABORT_SERVER").upper() == "ABORT_SERVER",
        gtid_strict_mode=not mariadb or _on(value["gtid_strict_mode"]),
        utf8_is_utf8mb3=not mariadb
        or release < OLD_MODE_UTF8
        or "UTF8_IS_UTF8MB3" in value.get("old_mode", "").upper(),
    )


def _on(value: str) -> bool:
    return value.upper() in {"ON", "1"}
