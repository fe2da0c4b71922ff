"""Records when each event was first seen, in Kafka and in the target, by two independent readers."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path
from typing import Any

import fastavro
import psycopg
from confluent_kafka import Consumer

from tests.bench.site import CLOCK, Service

_SCHEMA = Path(__file__).parents[2] / "schemas" / "fragment.avsc"
_OPENING = 10  # Avro's single-object marker and the schema's fingerprint
_LOOK = 0.002  # seconds


class Witness:
    """Starts to observe when created; `end` returns the observations.

    Args:
        service: service whose log and PostgreSQL target are read.
    """

    def __init__(self, service: Service) -> None:
        config = service.config
        self.committed: dict[int, int] = {}  # seqno → µs since 1970, on the source
        self.in_kafka: dict[int, int] = {}  # seqno → µs since 1970, readable
        self.in_target: dict[int, int] = {}  # seqno → µs since 1970, visible
        self._topic, self._bootstrap = config.topic, config.kafka.bootstrap
        self._dsn = config.target.url.get_secret_value()
        self._messages: list[tuple[int, bytes]] = []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._watch_kafka, self._watch_target)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop observing, and decode the messages, which would disturb the observation."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        schema = fastavro.parse_schema(json.loads(_SCHEMA.read_text()))
        for seen, value in self._messages:
            event: Any = fastavro.schemaless_reader(io.BytesIO(value[_OPENING:]), schema, None)
            if event["last_frag"] and event["kind"] == "transaction":
                self.committed[event["seqno"]] = event["commit_time"]
                self.in_kafka[event["seqno"]] = seen

    def _watch_kafka(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "witness",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                # Answered as soon as there is something; who asks all the time keeps half a core of the broker busy.
                "fetch.wait.max.ms": 100,
                "topic.metadata.refresh.interval.ms": 500,
            }
        )
        consumer.subscribe([self._topic])
        while not self._ended.is_set():
            message = consumer.poll(0.1)
            if message is not None and not message.error():
                self._messages.append((CLOCK.now(), message.value() or b""))
        consumer.close()

    def _watch_target(self) -> None:
        last = -1
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._ended.is_set():
                CLOCK.sleep(_LOOK)
                try:
                    found = connection.execute("SELECT seqno FROM thl.thl_position").fetchone()
                except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                    continue  # nothing was applied yet
                seen = CLOCK.now()
                if found and found[0] > last:
                    for seqno in range(last + 1, found[0] + 1):
                        self.in_target[seqno] = seen
                    last = found[0]
