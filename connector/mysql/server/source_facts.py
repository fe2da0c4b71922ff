"""The source's version and settings, read once at every start."""

from __future__ import annotations

import re
from dataclasses import dataclass

from connector.errors import PreflightError
from connector.mysql.server.connection import Connection, query

OLDEST = (5, 6)
NAMES_SINCE = (8, 0)  # before, the log has no column names, and there is no SET PERSIST
FLUSH_TABLES_SINCE = (8, 0, 23)  # a lesser privilege than RELOAD
OLDEST_MARIADB = (10, 5)
CASCADES_LOGGED_SINCE = (9, 6)
SHOW_REPLICAS = (8, 0, 22)
DAY = 86400
OLD_MODE_UTF8 = (10, 6, 1)  # before, utf8 is always utf8mb3

# MariaDB has no server UUID. Its server_id is in every GTID and must be unique in the replication; hostname and
# server_uid change when a container is re-created. Servers with the same server_id count as one server: going online is
# refused unless their logs agree.
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
    "system_time_zone",
    "version",
    "wsrep_on",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """The server's identity, and the settings that the producer depends on.

    Args:
        version: the server's version string, e.g. `8.0.43-log`.
        release: the first three numbers of it.
        lower_case_table_names: 0: names are case-sensitive.
        expire_seconds: seconds after which the server removes a binary log; 0: never.
        binlog_row_metadata: NONE if the server has no such variable: MySQL before 8.0.
        mariadb: true if it is a MariaDB.
        implicit_timestamps: true if, in MySQL before 8.0, a TIMESTAMP without NULL is NOT NULL
            (explicit_defaults_for_timestamp=OFF, the default), which its log does not contain.
        logs_replicated: true if its log has replicated changes.
        galera: true if it is a node of a Galera cluster.
        logs_sessions: true if new sessions write to the binary log; a MySQL before 5.7 can have it off for all.
        stops_without_log: true if it stops if it cannot write its binary log; True for MariaDB, which has no such
            variable.
        gtid_strict_mode: true if, in MariaDB, the numbers of a domain can only grow.
        utf8_is_utf8mb3: true if `utf8` in a definition is utf8mb3: in MariaDB by `old_mode` (10.6).
        cascades_logged: true if the binary log has changes by foreign keys' actions (since MySQL 9.6, unless
            `innodb_native_foreign_keys` is ON).
        system_time_zone: its name for the time zone that sessions have with SYSTEM.
        virtual_tables: MariaDB's captured tables with a VIRTUAL column, as preflight found them.
        unique_tables: those with a unique index besides the primary key.
        warnings: settings that are allowed but weaken a promise; each a sentence with the SQL that fixes it.
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
    system_time_zone: str = ""
    virtual_tables: frozenset[tuple[str, str]] = frozenset()
    unique_tables: frozenset[tuple[str, str]] = frozenset()
    warnings: tuple[str, ...] = ()

    @property
    def gtids(self) -> bool:
        """True if every transaction has a GTID."""
        return self.gtid_mode == "ON"

    @property
    def set_variable(self) -> str:
        """The statement that sets a variable; MariaDB and MySQL before 8.0 also need it in their configuration."""
        return "SET GLOBAL" if self.mariadb or not self.logs_column_names else "SET PERSIST"

    @property
    def logs_column_names(self) -> bool:
        """True if its log can have column names: not MySQL before 8.0."""
        return self.mariadb or self.release >= NAMES_SINCE

    @property
    def logs_replicated_by(self) -> str:
        """The variable that logs replicated changes."""
        return "log_replica_updates" if self.shows_replicas else "log_slave_updates"

    @property
    def server(self) -> str:
        """Vendor and version, for messages."""
        return f"{'MariaDB' if self.mariadb else 'MySQL'} {self.version}"

    @property
    def flush_privilege(self) -> str:
        """The least privilege that FLUSH TABLES WITH READ LOCK needs."""
        return "RELOAD" if self.mariadb or self.release < FLUSH_TABLES_SINCE else "FLUSH_TABLES"

    @property
    def unlogged_options(self) -> dict[str, str]:
        """Options of definitions that its log does not contain, with the server's values."""
        if self.logs_column_names:
            return {}
        return {"explicit_defaults_for_timestamp": "0" if self.implicit_timestamps else "1"}

    @property
    def shows_replicas(self) -> bool:
        """True if it has SHOW REPLICAS with UUIDs; older servers and MariaDB have SHOW SLAVE HOSTS."""
        return not self.mariadb and self.release >= SHOW_REPLICAS


def read_facts(connection: Connection) -> SourceFacts:
    """Reads the facts.

    Raises:
        PreflightError: the server is older than MySQL 5.6 or MariaDB 10.5.
    """
    names = ", ".join(f"'{name}'" for name in VARIABLES)
    rows = query(connection, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
    value = {row["Variable_name"]: str(row["Value"]) for row in rows}
    version = value["version"]
    release = tuple(int(part) for part in re.findall(r"\d+", version)[:3])
    mariadb = "mariadb" in version.lower()
    if mariadb and release < OLDEST_MARIADB:
        raise PreflightError(
            f"the source is MariaDB {version}; 10.5 is the oldest with column names in its binary log",
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
        system_time_zone=value.get("system_time_zone", ""),
        utf8_is_utf8mb3=not mariadb
        or release < OLD_MODE_UTF8
        or "UTF8_IS_UTF8MB3" in value.get("old_mode", "").upper(),
    )


def _on(value: str) -> bool:
    return value.upper() in {"ON", "1"}
