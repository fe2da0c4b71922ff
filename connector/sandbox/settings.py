"""The sandbox's ports, users, versions and server settings.

`docker/compose.yaml` repeats ports, users and broker settings, because a compose file cannot import; a test keeps
them equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HOST = "127.0.0.1"
# What the sandbox's configuration can have as its target, and the server for it; a file needs none.
TARGETS: Mapping[str, str] = {
    "sqlite": "",
    "duckdb": "",
    "postgres": "postgres",
    "mysql": "mysql-target",
    "mariadb": "mariadb",
}


@dataclass(frozen=True, slots=True)
class Account:
    """A user and its password."""

    user: str
    password: str = ""


# Sandbox servers have a password per data folder (`Mysqld.password`); the compose servers have this one.
MYSQL_ADMIN = Account("root")
MARIADB_ADMIN = Account("root")
POSTGRES_ADMIN = Account("thl", "thl")
POSTGRES_DATABASE = "postgres"

# First what a source needs (full row images, column names in the log), then what keeps a disposable server small.
MYSQL_SETTINGS: Mapping[str, str] = {
    "server_id": "1",
    "log_bin": "mysql-bin",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
    "sync_binlog": "1",
    "innodb_flush_log_at_trx_commit": "1",
    "max_allowed_packet": "256M",
    "innodb_buffer_pool_size": "256M",
    "innodb_redo_log_capacity": "256M",
    "max_connections": "200",
    "performance_schema": "OFF",
    "mysqlx": "OFF",
}

# Faster loading: a kill -9 of the server loses nothing, a power failure can.
MYSQL_FAST: Mapping[str, str] = {"sync_binlog": "0", "innodb_flush_log_at_trx_commit": "2"}

MARIADB_SETTINGS: Mapping[str, str] = {
    "server_id": "2",
    "log_bin": "mariadb-bin",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "gtid_strict_mode": "ON",
    "sync_binlog": "1",
    "innodb_flush_log_at_trx_commit": "1",
    "max_allowed_packet": "256M",
    "innodb_buffer_pool_size": "128M",
    "max_connections": "100",
    "ssl": "OFF",  # else it makes an RSA key of 4,096 bits at every start: 1 to 15 seconds
}

POSTGRES_SETTINGS: Mapping[str, str] = {
    "fsync": "on",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "max_wal_size": "1GB",
}

KAFKA_HEAP_MEGABYTES = 384
# More than `kafka.max_message_bytes`: topics of earlier versions had this limit; a request is a little larger.
KAFKA_MESSAGE_MAX_BYTES = 128 << 20
KAFKA_REQUEST_MAX_BYTES = 192 << 20

# A cluster of one node: every replication factor is 1. Topics are not created automatically, so a misspelled name is
# an error.
KAFKA_SETTINGS: Mapping[str, str] = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "message.max.bytes": str(KAFKA_MESSAGE_MAX_BYTES),
    "replica.fetch.max.bytes": str(KAFKA_MESSAGE_MAX_BYTES),
    "socket.request.max.bytes": str(KAFKA_REQUEST_MAX_BYTES),
    "log.cleaner.dedupe.buffer.size": "8388608",  # allocated at once; the default would be a third of this heap
    # A broker that was killed may register again only once its old session has ended.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
