"""A load that is killed again and again under write load ends equal, and reads no more than a round again each time."""

from __future__ import annotations

import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from connector.background import in_background
from connector.errors import SandboxError
from connector.log.ids import Kind
from connector.log.transaction.load import LoadEvent, Part
from tests.integration.applier.test_loads_from_mysql import Copy
from tests.integration.producer.test_table_loads import Copies, ended, events, wait_for_log
from tests.support.producing import Bench, Producing, until
from tests.support.servers.environment import (
    DatabaseServer,
    Restartable,
    kafka_for_tests,
    mysql_for_tests,
)
from tests.support.written_tables import TABLES, UNIQUE, asked, fill, fill_unique, on_source, writing

pytestmark = [pytest.mark.servers, pytest.mark.faults, pytest.mark.timeout(1500)]

KILLS: Final = 30
WRITERS: Final = 8
POINTS: Final = ("load.before_position:2", "load.before_rows:2", "load.mid_round:2", "load.mid_round:1")
ALL: Final = [*TABLES, UNIQUE]
SETTINGS: Final = {
    "THL_SOURCE__SNAPSHOT__CHUNK_ROWS": "40",
    "THL_SOURCE__SNAPSHOT__ROUND_SECONDS": "0.002",
    "THL_SOURCE__SNAPSHOT__MAX_ROWS_PER_SECOND": "800",  # so that the load is still there at the last kill
    "THL_SOURCE__DUMP_HEARTBEAT": "0.5",
}
# The initial load is none of those that are killed. In rounds of 40 rows it is hundreds of commits of Kafka.
AT_ONCE: Final = {
    "THL_SOURCE__SNAPSHOT__CHUNK_ROWS": "10000",
    "THL_SOURCE__SNAPSHOT__ROUND_SECONDS": "1",
    "THL_SOURCE__SNAPSHOT__MAX_ROWS_PER_SECOND": "100000",
}


@contextmanager
def defining(bench: Bench) -> Iterator[None]:
    """Create, change and drop other tables meanwhile."""

    def define(over: threading.Event) -> None:
        number = 0
        while not over.wait(2.0):
            number += 1
            name = f"{bench.service}.other{number}"
            with suppress(SandboxError):  # the server is killed meanwhile
                bench.sql(f"CREATE TABLE {name} (id INT PRIMARY KEY); ALTER TABLE {name} ADD v INT; DROP TABLE {name}")

    with in_background("defining", define, leave=None):
        yield


def killed(bench: Bench, number: int, servers: list[Restartable]) -> Producing:
    """Run a producer until the kill; return it."""
    chosen = random.Random(number)
    kind = number % 6
    if kind < len(POINTS):
        with bench.start(THL_CRASH_POINT=POINTS[kind]) as producing:
            assert producing.ended() == -signal.SIGKILL, producing.text
        return producing
    with bench.start() as producing:
        producing.online()
        time.sleep(chosen.uniform(0.1, 1.5))
        if kind == len(POINTS):
            producing.process.kill()
            return producing
        rounds = producing.text.count("published a round")
        server = servers[number // 6 % len(servers)]
        server.kill()
        server.start()
        until(lambda: producing.text.count("published a round") > rounds or producing.process.poll() is not None)
        assert producing.process.poll() is None, producing.text[-3000:]
        assert producing.stop() == 0, producing.text[-3000:]
    return producing


@pytest.mark.long
def test_load_killed_thirty_times_under_eight_writers_ends_equal(
    postgres_server: DatabaseServer, tmp_path: Path
) -> None:
    with mysql_for_tests(tmp_path / "mysql", {}) as mysql, kafka_for_tests(tmp_path / "kafka") as kafka:
        bench = Bench(mysql, kafka, tmp_path, settings=dict(SETTINGS))
        fill(bench, list(TABLES))
        fill_unique(bench)
        with bench.start(**AT_ONCE) as producing:
            producing.loaded()
            assert producing.stop() == 0
        copy = Copy(bench, postgres_server)
        applier = copy.applier()
        rounds: list[int] = []
        try:
            assert asked(bench, *(f"{bench.service}.{table}" for table in ALL)) == 0
            with writing(bench, ALL, writers=WRITERS, pause=0.05, killed=True), defining(bench):
                for number in range(KILLS):
                    text = killed(bench, number, [mysql, kafka]).text
                    rounds += map(int, re.findall(r"published a round of loads .*?\brows=(\d+)", text))
                assert not ended(bench, *ALL), "the load ended before the last kill"
                bench.settings["THL_SOURCE__SNAPSHOT__MAX_ROWS_PER_SECOND"] = "100000"
                with bench.start() as producing:
                    until(lambda: ended(bench, *ALL) or producing.process.poll() is not None)
                    assert producing.stop() == 0, producing.text[-3000:]
            with bench.start() as producing:
                producing.online()
                wait_for_log(bench)
                until(lambda: copy.has("last_one") or applier.popen.poll() is not None)
                assert applier.popen.poll() is None, applier.log.read_text()[-3000:]
                assert producing.stop() == 0, producing.text
            expected = {table: on_source(bench, table) for table in ALL}
        finally:
            applier.popen.terminate()
            applier.wait()
        copies, again = _read(bench)
        for table in ALL:
            assert copies.of(table) == expected[table]
            assert copy.table(table) == expected[table]
        assert copy.consistent()
        # A kill costs the round under way; nothing else is read twice.
        assert max(again.values(), default=1) <= 1 + KILLS
        assert sum(again.values()) - len(again) <= KILLS * max(rounds)


def _read(bench: Bench) -> tuple[Copies, Counter[tuple[str, object]]]:
    """What a reader has at the end, and how often each row was read by the load that was killed."""
    copies = Copies()
    for event in events(bench):
        copies.take(event)
        load = LoadEvent.of(event.header.metadata) if event.kind is Kind.LOAD else None
        if load is not None and load.part is Part.BEGIN:
            for key in [key for key in copies.read if key[0] == load.table.table]:
                del copies.read[key]
    return copies, copies.read
