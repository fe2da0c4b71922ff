"""The times of a transaction of `tests.bench.live`: committed, readable in Kafka, visible in PostgreSQL.

A transaction is there when its last row is. The commit's time is what the source wrote into its binary log, the same
for every peer and for ours.
"""

from __future__ import annotations

import json
import re
import subprocess
import threading
from collections.abc import Iterable

import psycopg
from confluent_kafka import Consumer, TopicPartition

from tests.bench.site import CLOCK, Site

_LOOK = 0.002  # seconds
_EACH = 5  # ids of a transaction; every second one uses only the first
_COMMITTED = re.compile(r"original_commit_timestamp=(\d+)")
_ID = re.compile(r"@1=(\d+)")


class Spectator:
    """Starts to observe when created; `end` returns the observations.

    Args:
        place: the servers.
        topic: with a JSON message for each row.
        table: in PostgreSQL; empty: there is none.
        first: the first id of the load.
    """

    def __init__(self, place: Site, topic: str, table: str, first: int) -> None:
        self.in_kafka: dict[int, int] = {}  # number of the transaction → µs since 1970
        self.in_target: dict[int, int] = {}
        self._bootstrap, self._dsn = place.kafka.bootstrap, place.postgres.dsn
        self._topic, self._table, self._first = topic, table, first
        self._messages: list[tuple[int, bytes]] = []
        self._ended = threading.Event()
        works = [self._watch_kafka, *([self._watch_table] if table else [])]
        self._threads = [threading.Thread(target=work) for work in works]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop observing, and decode the messages."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        for seen, value in self._messages:
            number = complete(key_of(value) - self._first)
            if number is not None:
                self.in_kafka[number] = seen

    def _watch_kafka(self) -> None:
        settings = {
            "bootstrap.servers": self._bootstrap,
            "group.id": f"spectator.{self._topic}",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 1,
        }
        consumer = Consumer(settings)
        consumer.assign([TopicPartition(self._topic, 0, 0)])
        while not self._ended.is_set():
            message = consumer.poll(0.1)
            if message is not None and not message.error() and message.value():
                self._messages.append((CLOCK.now(), message.value() or b""))
        consumer.close()

    def _watch_table(self) -> None:
        done = -1
        query = f"SELECT max(id) FROM {self._table}".encode()
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._ended.is_set():
                CLOCK.sleep(_LOOK)
                try:
                    found = connection.execute(query).fetchone()
                except psycopg.errors.UndefinedTable:
                    continue  # nothing was applied yet
                seen = CLOCK.now()
                if not found or found[0] is None or found[0] < self._first:
                    continue
                number = last_complete(int(found[0]) - self._first)
                for each in range(done + 1, number + 1):
                    self.in_target[each] = seen
                done = max(done, number)


def complete(row: int) -> int | None:
    """The transaction whose last row this is; None for any other row."""
    number, place = divmod(row, _EACH)
    return number if place == (_EACH - 1 if number % 2 else 0) else None


def last_complete(row: int) -> int:
    """The last complete transaction if this row is the last one."""
    number = row // _EACH
    return number if complete(row) is not None else number - 1


def key_of(value: bytes) -> int:
    """The id in a message's key: Debezium's, with and without schemas, and the relay's."""
    message = json.loads(value)
    message = message.get("payload", message)
    return int((message.get("after") or message["new"])["id"])


def committed(place: Site, first: int, until: int) -> dict[int, int]:
    """Transaction number → commit time in µs since 1970, for ids in a range; from the source's binary log.

    Raises:
        CalledProcessError: mysqlbinlog cannot read it.
    """
    with place.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        oldest = str(cursor.fetchall()[0][0])
    command = [*place.mysql.client("mysqlbinlog"), "--read-from-remote-server", "--to-last-log", "-v", oldest]
    text = subprocess.run(command, capture_output=True, check=True).stdout.decode(errors="replace")
    return {(row - first) // _EACH: at for row, at in _rows(text.splitlines()) if first <= row < until}


def _rows(lines: Iterable[str]) -> Iterable[tuple[int, int]]:
    at = 0
    for line in lines:
        if line.startswith("# original_commit_timestamp"):
            at = int((_COMMITTED.search(line) or [0, 0])[1])
        elif line.startswith("###   @1="):
            yield int((_ID.search(line) or [0, 0])[1]), at
