"""Debezium's MySQL connector on Kafka Connect, from the beginning of the binary log into a topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.bench.meter import Meter
from tests.bench.peers.connect import Connect
from tests.bench.peers.peer import Load
from tests.bench.peers.topic import Topic
from tests.bench.peers.watch import watch
from tests.bench.result import Row
from tests.bench.site import Site
from tests.bench.workload import CHANGES, SCHEMA

LEAN = {"key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"}
LZ4 = {"producer.compression.type": "lz4"}


@dataclass(frozen=True, slots=True)
class Variant:
    """A configuration variant.

    Args:
        name: name of the variant, used in topics.
        label: label in the case.
        worker: settings of the worker.
        connector: settings of the connector.
    """

    name: str
    label: str
    worker: Mapping[str, str] = field(default_factory=dict)
    connector: Mapping[str, str] = field(default_factory=dict)


PLAIN = Variant("plain", "Debezium, schemas in every message")
LEANER = Variant("lean", "Debezium, no schemas, lz4", {**LEAN, **LZ4})
MARKED = Variant(
    "marked", "Debezium, lean + transaction metadata", LEANER.worker, {"provide.transaction.metadata": "true"}
)
EXACT = Variant(
    "exact",
    "Debezium, lean + transaction metadata + exactly once",
    {**LEANER.worker, "exactly.once.source.support": "enabled"},
    {**MARKED.connector, "exactly.once.support": "required"},
)


def source(place: Site, name: str, tables: str, **more: str) -> dict[str, str]:
    """The connector's configuration: its defaults, and the required fields."""
    return {
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "tasks.max": "1",
        "database.hostname": place.mysql.host,
        "database.port": str(place.mysql.port),
        "database.user": place.mysql.user,
        "database.password": place.mysql.password,
        "database.server.id": str(5000 + sum(name.encode())),
        "database.ssl.mode": "disabled",
        "driver.allowPublicKeyRetrieval": "true",
        "topic.prefix": name,
        "table.include.list": tables,
        "include.schema.changes": "false",
        "schema.history.internal.kafka.bootstrap.servers": place.kafka.bootstrap,
        "schema.history.internal.kafka.topic": f"{name}.history",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        **more,
    }


def _beginning(place: Site) -> dict[str, str | int]:
    """The offset after the first transaction, which only creates a table: an empty GTID set is not accepted."""
    with place.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        first = str(cursor.fetchall()[0][0])
        cursor.execute("SELECT @@server_uuid")
        return {"file": first, "pos": 4, "gtids": f"{cursor.fetchall()[0][0]}:1"}


def topic_name(variant: Variant, kind: str) -> str:
    """The topic of a table's changes."""
    return f"{variant.name}.{SCHEMA}.{kind}"


@dataclass(frozen=True, slots=True)
class Debezium:
    """One variant."""

    variant: Variant

    def __call__(self, load: Load) -> list[Row]:
        """Measure; there is one message per row, and a tombstone after each delete."""
        place, variant = load.place, self.variant
        deletes = load.backlog.rows // CHANGES if load.kind == "oltp" else 0
        messages = load.backlog.rows + deletes
        topic = Topic(place.kafka.bootstrap, topic_name(variant, load.kind))
        # It cannot begin at the log's beginning without a snapshot, so it gets a stored offset.
        settings = {"snapshot.mode": "recovery", **variant.connector}
        begin = ({"server": variant.name}, _beginning(place))
        try:
            with Connect(place, f"{variant.name}-{load.kind}", variant.worker) as worker:
                worker.create("source", source(place, variant.name, f"{SCHEMA}.{load.kind}", **settings), begin)
                share = load.backlog.rows / messages
                course = watch(
                    place,
                    {"Connect": Meter(worker.pid)},
                    lambda: int(topic.messages() * share),
                    load.backlog.rows,
                    lambda: worker.check("source"),
                )
                found = topic.messages()
        finally:
            topic.close()
        exact = "exactly.once.support" in variant.connector  # then offsets are spent on transactions, too
        wrong = "" if found == messages or (exact and found > messages) else f"{found} of {messages} messages"
        return [Row(f"MySQL to Kafka, {load.kind}: {variant.label}", course.figures(), wrong)]
