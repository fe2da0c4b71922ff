"""A schema registry with Confluent's API (Apicurio): when it is needed, and which schema versions it accepts."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pydantic import SecretStr

from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.config.apply import Apply, Target
from connector.config.kafka import Registry
from connector.config.model import Config
from connector.consume import Consumer, RowChanges
from connector.errors import ConfigError, PreflightError, RegistryUnavailable
from connector.kafka.registry import registered_number, subject_of
from connector.log.ids import Seqno
from connector.sandbox.ports import free_port
from connector.spark.session import SparkRun
from tests.support.fragments import RAW, change, encoded, record
from tests.support.producing import SMALL, Bench, fragments, last_seqno, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.servers.registry import RegistryServer
from tests.support.spark import session
from tests.unit.consume.test_decoding import newer


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkRun]:
    with session(tmp_path_factory.mktemp("spark")) as started:
        yield started


def with_registry(url: str, **properties: str) -> Config:
    return Config(
        service=f"s{uuid.uuid4().hex[:8]}",
        registry=Registry(url=SecretStr(url), properties={name.replace("_", "."): v for name, v in properties.items()}),
    )


@pytest.mark.long
def test_running_producer_does_not_need_the_registry(
    mysql_server: SqlServer, kafka_broker: Broker, registry_server: RegistryServer, spark: SparkRun, tmp_path: Path
) -> None:
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=dict(SMALL))
    bench.make_table()
    with bench.start() as plain:
        plain.loaded()
        before = last_seqno(bench)
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        until(lambda: last_seqno(bench) > before)
        assert plain.stop() == 0
    begun, settings = last_seqno(bench), {"THL_REGISTRY__URL": registry_server.url}
    try:
        with bench.start(**settings) as framing:
            framing.online()
            bench.insert_many(500)  # an event of several fragments
            until(lambda: last_seqno(bench) > begun)
            numbered = deserialized(bench.config, registry_server, begun + 1)
            registry_server.kill()
            bench.sql(f"UPDATE {bench.service}.t SET v = 'changed' WHERE id = 1")
            until(lambda: last_seqno(bench) > begun + 1)
            assert framing.stop() == 0
        with bench.start(**settings, THL_REGISTRY__PROPERTIES='{max.retries: "0"}') as down:
            assert down.ended() == RegistryUnavailable.exit_code
            assert "the schema registry does not answer" in down.text
        check_readers(bench, spark, tmp_path)
    finally:
        registry_server.start()
    # What the deserializer gave: the epoch's marker and all of the large event, and nothing that was there before.
    written = fragments(bench.config)
    assert numbered == [one for one in written if one["epoch"] == 2 and one["seqno"] == begun + 1]
    assert [one["kind"] for one in numbered[:2]] == ["epoch", "transaction"]
    assert sum(len(change["rows"]) for one in numbered for change in one["changes"]) == 500
    assert {one["metadata"].get("schema") for one in written if one["epoch"] == 1} == {None}


def deserialized(config: Config, registry: RegistryServer, seqno: int) -> list[Any]:
    """The messages that begin as the registry's serializers begin them, by its own deserializer, to an event's end."""
    read = AvroDeserializer(SchemaRegistryClient({"url": registry.url}))
    consumer = KafkaConsumer(
        {"bootstrap.servers": config.kafka.bootstrap, "group.id": "x", "enable.auto.commit": False}
        | {"isolation.level": "read_committed"}
    )
    consumer.assign([TopicPartition(config.topic, 0, 0)])
    found: list[Any] = []
    try:
        while True:
            message = consumer.poll(60)
            assert message is not None
            value = message.value()
            assert message.error() is None, message.error()
            assert value is not None
            if value[0] == 0:
                found.append(read(value, SerializationContext(config.topic, MessageField.VALUE)))
                if (found[-1]["seqno"], found[-1]["outcome"]) == (seqno, "commit"):
                    return found
    finally:
        consumer.close()


def check_readers(bench: Bench, spark: SparkRun, folder: Path) -> None:
    """Our consumer and our applier, of a log that holds both, while the registry is gone."""
    rows: dict[int, str] = {}
    with Consumer(bench.kafka.bootstrap, bench.service, until_end=True) as reading:
        for seqno, event in enumerate(reading):
            assert event.seqno == seqno
            for changes in event.changes:
                if isinstance(changes, RowChanges):
                    rows |= {row.after["id"]: row.after["v"] for row in changes.rows if row.after is not None}
    assert sorted(rows.items()) == bench.rows()
    assert len(rows) == 503
    target = Target(url=SecretStr(f"sqlite:///{folder / 'target.db'}"))
    config = bench.config.model_copy(update={"target": target, "apply": Apply(checkpoint_dir=folder / "spark")})
    position = Applier(config, spark, SystemClock(), Event(), until=Seqno(last_seqno(bench))).run()
    assert position is not None
    assert (position.seqno, position.epoch, position.consistent) == (last_seqno(bench), 2, True)
    assert on_target(folder / "target.db") == bench.rows()


def on_target(database: Path) -> list[tuple[Any, ...]]:
    import sqlite3

    with sqlite3.connect(database) as db:
        (table,) = db.execute("SELECT target_name FROM thl_tables WHERE table_name = 't'").fetchone()
        return db.execute(f'SELECT id, v FROM "{table}" ORDER BY id').fetchall()


def test_an_older_and_a_newer_version_read_each_others_events(registry_server: RegistryServer) -> None:
    config = with_registry(registry_server.url)
    first, second = registered_number(config, RAW), registered_number(config, newer())
    assert first != second
    assert registered_number(config, RAW) == first
    client = SchemaRegistryClient({"url": registry_server.url})
    assert client.get_compatibility(subject_of(config)) == "FULL_TRANSITIVE"
    fields = record(41, [change("insert", [(None, (7, "ü")), (None, (2**40, None))])])
    old = numbered(first, encoded(fields)[10:])
    new = numbered(second, body_of_newer(fields))
    context = SerializationContext(config.topic, MessageField.VALUE)
    by_old, by_new = (AvroDeserializer(client, json.dumps(schema)) for schema in (RAW, newer()))
    plain, told = by_old(old, context), by_new(new, context)
    assert by_new(old, context) == {**told, "region": "eu", "note": None, "changes": with_comments(plain, "")}
    assert by_old(new, context) == plain
    assert (told["region"], told["note"], told["changes"]) == ("us", "new", with_comments(plain, "a column"))


def numbered(number: int, body: bytes) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + body


def body_of_newer(fields: dict[str, Any]) -> bytes:
    import io

    import fastavro

    more = copy.deepcopy(fields) | {"region": "us", "note": "new", "crc32": encoded(fields)[-4:]}
    more["changes"] = with_comments(more, "a column")
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(newer()), more)
    return out.getvalue()


def with_comments(fragment: Any, comment: str) -> list[Any]:
    changes = copy.deepcopy(fragment["changes"])
    for each in changes:
        for column in each["columns"]:
            column["comment"] = comment
    return list(changes)


def without_default(fields: list[Any]) -> None:
    fields.insert(3, {"name": "must", "type": "string"})


def one_less(fields: list[Any]) -> None:
    del fields[[field["name"] for field in fields].index("thread_id")]


def another_type(fields: list[Any]) -> None:
    next(field for field in fields if field["name"] == "rows")["type"] = "string"


@pytest.mark.parametrize("broken", [without_default, one_less, another_type])
@pytest.mark.parametrize("level", [None, "NONE", "BACKWARD"])
def test_incompatible_schema_version_is_refused(registry_server: RegistryServer, broken: Any, level: str) -> None:
    """Also where the subject was less strict."""
    config = with_registry(registry_server.url)
    if level is not None:
        registered_number(config, RAW)
        SchemaRegistryClient({"url": registry_server.url}).set_compatibility(subject_of(config), level)
    registered_number(config, RAW)
    schema = copy.deepcopy(RAW)
    broken(schema["fields"])
    with pytest.raises(PreflightError) as refused:
        registered_number(config, schema)
    assert refused.value.where == {"subject": subject_of(config)}  # no status: incompatible, not refused access


def test_unavailable_and_wrong_registries_are_reported(registry_server: RegistryServer) -> None:
    nowhere = f"http://me:secret@127.0.0.1:{free_port()}"
    with pytest.raises(RegistryUnavailable) as raised:
        registered_number(with_registry(nowhere, max_retries="0"), RAW)
    assert "secret" not in str(raised.value)
    with pytest.raises(PreflightError) as refused:
        registered_number(with_registry(registry_server.url + "/nothing"), RAW)
    assert refused.value.where["status"] == 404


@pytest.mark.parametrize(
    ("url", "properties", "fields"),
    [
        ("ftp://me:secret@x", {}, {"option": "registry.url"}),
        (
            "http://me:secret@x",
            {"max_retries": "few"},
            {"option": "registry.properties", "property": "max.retries"},
        ),
        ("http://me:secret@x", {"no_such": "thing"}, {"option": "registry.properties"}),
        ("https://x", {"ssl_ca_location": "/no/such/file"}, {"option": "registry.properties"}),
    ],
)
def test_wrong_registry_configuration_is_refused_without_secrets(
    url: str, properties: dict[str, str], fields: dict[str, str]
) -> None:
    with pytest.raises(ConfigError) as raised:
        registered_number(with_registry(url, **properties), RAW)
    assert raised.value.where == fields
    assert "secret" not in str(raised.value)
