"""Milliseconds from commit to readable in Kafka and to visible in PostgreSQL, by two readers that are not ours."""

from __future__ import annotations

import io
import json
import statistics
import threading
from pathlib import Path
from random import Random

import fastavro
import psycopg
import pymysql
from confluent_kafka import Consumer

from tests.bench import workload
from tests.bench.meter import usage
from tests.bench.site import CLOCK, Site, site

_SCHEMA = fastavro.parse_schema(json.loads((Path(__file__).parents[2] / "schemas" / "fragment.avsc").read_text()))
_SETTLE = 5.0


class Witness:
    """Notes when each seqno was first seen, in Kafka and in the target."""

    def __init__(self, place: Site) -> None:
        self.committed: dict[int, int] = {}
        self.in_kafka: dict[int, int] = {}
        self.in_target: dict[int, int] = {}
        self._place = place
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._watch_kafka, self._watch_target)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _watch_kafka(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._place.kafka.bootstrap,
                "group.id": "witness",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 1,
                "topic.metadata.refresh.interval.ms": 500,
            }
        )
        consumer.subscribe(["thl.bench"])
        while not self._ended.is_set():
            message = consumer.poll(0.1)
            if message is None or message.error():
                continue
            seen = CLOCK.now()
            event = fastavro.schemaless_reader(io.BytesIO(message.value()[10:]), _SCHEMA, None)
            if event["last_frag"] and event["kind"] == "transaction":
                self.committed[event["seqno"]] = event["commit_time"]
                self.in_kafka[event["seqno"]] = seen
        consumer.close()

    def _watch_target(self) -> None:
        last = -1
        with psycopg.connect(self._place.postgres.dsn, autocommit=True) as connection:
            while not self._ended.is_set():
                CLOCK.sleep(0.002)
                try:
                    found = connection.execute("SELECT seqno FROM thl.thl_position").fetchone()
                except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                    continue
                seen = CLOCK.now()
                if found and found[0] > last:
                    for seqno in range(last + 1, found[0] + 1):
                        self.in_target[seqno] = seen
                    last = found[0]


def run(rate: int, seconds: float) -> dict[str, dict[str, float]]:
    """Single-row and five-row transactions at `rate` a second, for `seconds` after all is warm."""
    with site() as place:
        producer, _ = place.worker("produce", source={"start": "snapshot"})
        applier, _ = place.worker("apply")
        producer.start()
        applier.start()
        witness = Witness(place)
        began = CLOCK.now()
        _commit(place, rate, 20.0 + seconds)
        CLOCK.sleep(_SETTLE)
        witness.end()
        used = {
            "producer": usage(producer.pid or 0),
            "applier's driver": usage(applier.pid or 0, name="python"),
            "applier's JVM": usage(applier.pid or 0, name="java"),
        }
        for worker in (applier, producer):
            worker.check()
            worker.stop()
        warm = began + 20_000_000
        return {
            f"commit to Kafka at {rate}/s": _percentiles(witness.committed, witness.in_kafka, warm),
            f"commit to PostgreSQL at {rate}/s": _percentiles(witness.committed, witness.in_target, warm),
            **{f"{name} at {rate}/s, {20 + seconds:.0f} s": used[name].figures() for name in used},
        }


def _commit(place: Site, rate: int, seconds: float) -> None:
    """An open loop: what is late is not left out."""
    random = Random(1)
    connection: pymysql.Connection = place.connect()
    connection.select_db(workload.SCHEMA)
    with connection.cursor() as cursor:
        began = CLOCK.monotonic()
        for number in range(int(rate * seconds)):
            CLOCK.sleep(max(0.0, began + number / rate - CLOCK.monotonic()))
            for row in range(random.choice((1, 5))):
                cursor.execute(
                    "INSERT INTO oltp VALUES (%s, 1, 2, 3.5, NOW(6), NULL, 0.25, %s, 'h', NULL)",
                    (number * 10 + row, "g" * 90),
                )
            connection.commit()
    connection.close()


def _percentiles(committed: dict[int, int], seen: dict[int, int], since: int) -> dict[str, float]:
    late = [(seen[n] - at) / 1000 for n, at in committed.items() if at >= since and n in seen]
    missing = sum(1 for n, at in committed.items() if at >= since and n not in seen)
    cuts = statistics.quantiles(late, n=100)
    return {"events": len(late), "missing": missing, "p50 ms": cuts[49], "p95 ms": cuts[94], "p99 ms": cuts[98]}
