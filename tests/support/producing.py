"""Runs `thl produce` as a process, and reads its log."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
from confluent_kafka import Consumer, KafkaError, TopicPartition

from connector.config.loading import load
from connector.config.model import Config
from connector.errors import BrokerUnavailable
from connector.kafka.log_reader import LogReader
from connector.log.format.framing import body_at
from connector.schema import load_schema
from tests.support.clock import PATIENCE
from tests.support.servers.environment import Broker, SqlServer

SCHEMA: Any = fastavro.parse_schema(load_schema())  # also of other events: their bytes are the same
SMALL = {  # so that a few thousand rows are many pieces, fragments and Kafka transactions
    "THL_SOURCE__PIECE_BYTES": "65536",
    "THL_PUBLISH__SHARD_BYTES": "65536",
    "THL_PUBLISH__COMMIT_BYTES": "65536",
    "THL_PUBLISH__FRAGMENT_BYTES": "8192",
}


def until(what: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait for a condition."""
    give_up = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < give_up, "waited in vain"
        time.sleep(0.05)


@dataclass
class Bench:
    """One service on the servers of the tests."""

    mysql: SqlServer
    kafka: Broker
    folder: Path
    service: str = field(default_factory=lambda: f"s{uuid.uuid4().hex[:8]}")
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "THL_SERVICE": self.service,
            "THL_SOURCE__HOST": self.mysql.host,
            "THL_SOURCE__PORT": str(self.mysql.port),
            "THL_SOURCE__USER": self.mysql.user,
            "THL_SOURCE__PASSWORD": self.mysql.password,
            "THL_SOURCE__SERVER_ID": str(10_000 + int(self.service[1:5], 16)),
            "THL_SOURCE__FILTERS__DO": f'["{self.service}"]',
            "THL_KAFKA__BOOTSTRAP": self.kafka.bootstrap,
            "THL_KAFKA__REPLICATION": "1",
            "THL_KAFKA__MIN_ISR": "1",
            "THL_KAFKA__ALLOW_UNSAFE": "true",
            **self.settings,
        }

    @property
    def config(self) -> Config:
        return load(None, self.environment)

    def sql(self, text: str) -> str:
        return self.mysql.run_sql(text)

    def make_table(self) -> None:
        self.sql(
            f"CREATE DATABASE {self.service}; "
            f"CREATE TABLE {self.service}.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(200));"
            f"INSERT INTO {self.service}.t (v) VALUES ('first'), ('second')"
        )

    def insert_many(self, rows: int) -> None:
        """Inserts many rows in one transaction."""
        self.sql(
            f"SET SESSION cte_max_recursion_depth = {rows + 1}; INSERT INTO {self.service}.t (v) "
            f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) "
            f"SELECT concat(repeat('x', 100), i) FROM n"
        )

    def start(self, *options: str, **environ: str) -> Producing:
        return Producing.start(self, environ, options)

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the table on the source."""
        lines = self.sql(f"SELECT id, v FROM {self.service}.t ORDER BY id").splitlines()[1:]
        return [(int(line.split("\t")[0]), line.split("\t")[1]) for line in lines]


@dataclass
class Producing:
    """A running `thl produce`."""

    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(cls, bench: Bench, environ: Mapping[str, str], options: Sequence[str] = ()) -> Producing:
        log = bench.folder / f"produce-{uuid.uuid4().hex[:6]}.log"
        kept = {name: value for name, value in os.environ.items() if not name.startswith("THL_")}
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.thl", "produce", *options],
                env={**kept, **bench.environment, **environ, "THL_DEBUG": "1"},
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        return cls(process, log)

    def online(self) -> Producing:
        until(lambda: " online service=" in self.text or self.process.poll() is not None)
        assert self.process.poll() is None, self.text
        return self

    def loaded(self) -> Producing:
        """Wait for the end of the initial load: rows written before it may be part of it instead of an event."""
        self.online()
        until(lambda: " loaded service=" in self.text or self.process.poll() is not None)
        assert self.process.poll() is None, self.text
        return self

    @property
    def text(self) -> str:
        return self.log.read_text()

    def ended(self) -> int:
        """Wait for the process to end by itself; return its exit code."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(self.text) from None

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def __enter__(self) -> Producing:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def fragments(config: Config, partition: int = 0, *, isolation: str = "read_committed") -> list[dict[str, Any]]:
    """Every message of a partition of the event topic, decoded by fastavro."""
    consumer = Consumer(
        {
            "bootstrap.servers": config.kafka.bootstrap,
            "group.id": "test",
            "isolation.level": isolation,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(config.topic, partition, 0)])
    found = []
    try:
        while True:
            message = consumer.poll(PATIENCE)
            assert message is not None
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                return found
            value = message.value()
            assert value is not None
            record = fastavro.schemaless_reader(io.BytesIO(value[body_at(value) :]), SCHEMA, None)
            assert isinstance(record, dict)
            found.append(record)
    finally:
        consumer.close()


def finished(records: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The whole events, each as its fragments, without given up attempts."""
    events: list[list[dict[str, Any]]] = []
    current: list[dict[str, Any]] = []
    for record in records:
        if record["fragno"] == 0:
            current = []
        if record["kind"] == "epoch":
            continue
        assert record["fragno"] == len(current)
        current.append(record)
        if record["last_frag"]:
            events.append(current)
    return events


def table_of(events: list[list[dict[str, Any]]]) -> list[tuple[Any, ...]]:
    """The keyed table after the events; the first column is the key."""
    rows: dict[Any, tuple[Any, ...]] = {}
    loading = False  # rows that are still to be read may be missing
    for event in events:
        part = event[0]["metadata"].get("load_part")
        if part in {"begin", "whole"}:
            rows.clear()
        loading = part == "begin" or (loading and part != "end")
        for fragment in event:
            for change in fragment["changes"]:
                for row in change.get("rows", ()):
                    if row["before"] is not None:
                        assert loading or row["before"][0] in rows
                        rows.pop(row["before"][0], None)
                    if row["after"] is not None:
                        assert loading or part == "whole" or row["after"][0] not in rows
                        rows[row["after"][0]] = tuple(row["after"])
    return [rows[key] for key in sorted(rows)]


def last_seqno(bench: Bench) -> int:
    """The seqno of the last finished event; -1 if there is none, or no log yet."""
    try:
        with LogReader(bench.config) as reader:
            position = reader.position()
    except BrokerUnavailable:  # the topics are not there yet
        return -1
    return position.last_finished if position else -1


def check(bench: Bench) -> list[list[dict[str, Any]]]:
    """Checks that each event is finished once, seqnos are dense, and the rows equal the source's."""
    events = finished(fragments(bench.config))
    assert [event[0]["seqno"] for event in events] == list(range(len(events)))
    assert table_of(events) == bench.rows()
    return events
