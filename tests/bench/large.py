"""`python -m tests.bench.large`: large rows in parts through messages of 1 MiB; memory and completeness.

Transactions of random sizes (1 KiB to 40 MiB, each power of two as likely) over several schemas, and now and then a row
of 64 MiB, through topics that take no larger message, to PostgreSQL. Exit 1 unless source and target are equal and the
memory of producer and applier stays within the bounds given.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterator, Mapping
from threading import Event, Thread

import click
import psycopg
from confluent_kafka.admin import AdminClient, NewTopic

from connector.config.loading import load as load_config
from connector.config.model import Config
from connector.demo.stage import Worker
from connector.demo.workload import Connect
from connector.verify import verify
from tests.bench.drain import APPLIER, PRODUCER
from tests.bench.meter import Meter, Usage
from tests.bench.site import CLOCK, site

MESSAGE = 1 << 20
SMALLEST, LARGEST = 1 << 10, 40 << 20
ROW = 64 << 20
SCHEMAS = 4
KEYS = 40  # rows of a schema at most: what was written is written over
END = -1  # the key of the last row
LOOK = 0.5  # seconds
DIGEST = 128  # bytes of the pattern that a body repeats


def made_small(config: Config, partitions: int) -> None:
    """Create the topics for rows with Kafka's default message size."""
    admin = AdminClient({"bootstrap.servers": config.kafka.bootstrap})
    limit = {"max.message.bytes": str(MESSAGE)}
    events = NewTopic(config.topic, partitions, 1, config=limit | {"message.timestamp.type": "LogAppendTime"})
    prepared = NewTopic(config.prepared_topic, 1, 1, config=limit | {"cleanup.policy": "compact"})
    for created in admin.create_topics([events, prepared]).values():
        created.result(30)


def sizes(count: int, seed: int) -> Iterator[list[int]]:
    """The sizes of each transaction's rows, in bytes."""
    chosen = random.Random(seed)
    for number in range(count):
        if number % max(1, count // 5) == 0:
            yield [ROW]
            continue
        whole = int(2 ** chosen.uniform(math.log2(SMALLEST), math.log2(LARGEST)))
        rows = chosen.randint(1, 12)
        yield [max(1, whole // rows)] * rows


def write(connect: Connect, count: int, seed: int) -> int:
    """Execute all transactions in order.

    Returns:
        Bytes of the bodies that were written.
    """
    chosen, written = random.Random(seed + 1), 0
    with connect() as connection, connection.cursor() as cursor:
        for schema in range(SCHEMAS):
            cursor.execute(f"CREATE TABLE large{schema}.t (id INT PRIMARY KEY, body LONGBLOB NOT NULL)")
        for rows in sizes(count, seed):
            schema = chosen.randrange(SCHEMAS)
            for size in rows:
                key, pattern = chosen.randrange(KEYS), f"{chosen.getrandbits(256):064x}"
                if chosen.random() < 0.1:
                    cursor.execute(f"DELETE FROM large{schema}.t WHERE id = %s", (key,))
                cursor.execute(
                    f"REPLACE INTO large{schema}.t VALUES (%s, LEFT(REPEAT(SHA2(%s, 512), %s), %s))",
                    (key, pattern, size // DIGEST + 1, size),
                )
                written += size
            connection.commit()
        cursor.execute(f"INSERT INTO large0.t VALUES ({END}, '')")
        connection.commit()
    return written


def there(dsn: str) -> bool:
    """True if the last row is in the target."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        try:
            return connection.execute("SELECT 1 FROM large0.t WHERE id = %s", (END,)).fetchone() is not None
        except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
            return False


class Memory:
    """Watches the memory of a process and its children: the most that they have at once, and which of them has it.

    Args:
        worker: the process; it may start later.
        parts: its members: name → their program; see `Meter`.
    """

    def __init__(self, worker: Worker, parts: Mapping[str, str]) -> None:
        self._worker = worker
        self._parts = parts
        self._used: dict[str, Usage] = {}
        self._most: dict[str, int] = {}
        self._ended = Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Watch no longer."""
        self._ended.set()
        self._thread.join()

    @property
    def megabytes(self) -> float:
        """The most at once."""
        return sum(self._most.values()) / 1e6

    def __str__(self) -> str:
        shares = ", ".join(f"{name} {size / 1e6:,.0f}" for name, size in self._most.items())
        own = sum(used.peak for used in self._used.values()) / 1e6
        seconds = ", ".join(f"{name} {used.cpu_seconds:.1f}" for name, used in self._used.items())
        return f"{self.megabytes:,.0f} MB at once ({shares}), {own:,.0f} as the sum of own peaks; CPU s: {seconds}"

    def _watch(self) -> None:
        meters: dict[str, Meter] = {}
        while not self._ended.wait(LOOK):
            if self._worker.pid is None:
                continue
            meters = meters or {name: Meter(self._worker.pid, program) for name, program in self._parts.items()}
            self._used = {name: meter.read() for name, meter in meters.items()}
            now = {name: used.together for name, used in self._used.items()}
            if sum(now.values()) > sum(self._most.values()):
                self._most = now


@click.command()
@click.option("--transactions", default=1000, show_default=True)
@click.option("--partitions", default=8, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--behind", is_flag=True, help="The applier starts when all is written.")
@click.option("--patience", default=3600, show_default=True, help="Seconds.")
@click.option("--producer-megabytes", default=700, show_default=True, help="Memory at once that is too much.")
@click.option("--applier-megabytes", default=1400, show_default=True, help="Likewise, with all of its processes.")
def main(
    *,
    transactions: int,
    partitions: int,
    seed: int,
    behind: bool,
    patience: int,
    producer_megabytes: int,
    applier_megabytes: int,
) -> None:
    """Measure large rows."""
    with site() as place:
        schemas = [f"large{number}" for number in range(SCHEMAS)]
        with place.connect() as connection, connection.cursor() as cursor:
            for schema in schemas:
                cursor.execute(f"CREATE DATABASE {schema}")
        filters = {"filters": {"do": schemas}}
        producer, _ = place.worker("produce", source=filters)
        applier, _ = place.worker("apply", source=filters)
        config = load_config(applier.config)
        made_small(config, partitions)
        memory = {"producer": Memory(producer, PRODUCER), "applier": Memory(applier, APPLIER)}
        producer.start()
        if not behind:
            applier.start()
        began = CLOCK.monotonic()
        written = write(place.connect, transactions, seed)
        if behind:
            applier.start()
        while not there(place.postgres.dsn) and CLOCK.monotonic() - began < patience:
            producer.check()
            applier.check()
            CLOCK.sleep(0.25)
        seconds = CLOCK.monotonic() - began
        for one in memory.values():
            one.end()
        report = verify(config)
        for worker in (applier, producer):
            worker.stop()
    print(
        f"{transactions} transactions, {written / 1e6:,.0f} MB of rows up to {ROW >> 20} MiB, in messages of"
        f" {MESSAGE >> 20} MiB on {partitions} partitions: equal: {report.equal}, {seconds:.0f} s,"
        f" {written / 1e6 / seconds:.0f} MB/s with the writing"
    )
    for name, one in memory.items():
        print(f"{name}: {one}")
    fits = memory["producer"].megabytes <= producer_megabytes and memory["applier"].megabytes <= applier_megabytes
    sys.exit(0 if report.equal and fits else 1)


if __name__ == "__main__":
    main()
