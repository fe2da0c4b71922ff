"""`thl apply` with several writers is killed at every step of a divided commit; each event is applied once.

Each start has another number of writers and other batches. The log is written without a producer: what is killed is the
applier alone. A row per event in a table without a key, and in `thl_applied`, shows that each was applied once.
"""

from __future__ import annotations

import signal
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import psutil
import psycopg
import pytest
import yaml
from pydantic import SecretStr

from connector import failpoints as faults
from connector.config.apply import Target
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.errors import Fenced
from connector.fetching.jars import spark_kafka_jars
from tests.support.apply_process import THL, Process, attempts
from tests.support.clock import PATIENCE
from tests.support.fragments import change, record, statement
from tests.support.log_writer import LogWriter
from tests.support.servers.environment import Broker, DatabaseServer

pytestmark = [pytest.mark.servers, pytest.mark.faults, pytest.mark.long]

CREATES: Final = (
    "CREATE DATABASE shop",
    "CREATE TABLE entries (id INT NOT NULL PRIMARY KEY, v INT)",
    "CREATE TABLE counters (id INT NOT NULL PRIMARY KEY, v INT)",
    "CREATE TABLE journal (id INT, v INT)",
)
COUNTERS: Final = 200
INSERTS: Final = 150  # rows of an event
UPDATES: Final = 50
EVENTS: Final = 60  # of a batch of the log: some 12,000 rows, of which 4,000 are divided


class Bench:
    """A log, a target with several writers, and the applier's processes."""

    def __init__(self, folder: Path, bootstrap: str, url: str) -> None:
        self.folder = folder
        self.config = Config(
            service=f"w{uuid.uuid4().hex[:10]}", kafka=Kafka(bootstrap=bootstrap), target=Target(url=SecretStr(url))
        )
        self.file = folder / "thl.yaml"
        self.log = LogWriter(self.config)
        self.log.online()
        self.processes: list[Process] = []
        self.values: list[dict[int, int]] = []  # of `counters` after each event
        creates = [statement(sql) for sql in CREATES]
        self.log.events([record(0, creates, kind="ddl", shard="#UNKNOWN")])
        filled = dict.fromkeys(range(COUNTERS), 0)
        rows = change("insert", [(None, [key, 0]) for key in filled], table="counters")
        self.log.events([record(1, [rows], last_barrier=0)])
        self.values += [{}, filled]
        self.reader = psycopg.connect(url, autocommit=True)

    def write(self, events: int = EVENTS) -> None:
        """Write events of three tables."""
        first = self.log.seqno + 1
        self.log.events([record(n, self._changes(n), last_barrier=0) for n in range(first, first + events)])

    def _changes(self, seqno: int) -> list[dict[str, Any]]:
        before = self.values[-1]
        keys = [(seqno * 7 + number) % COUNTERS for number in range(UPDATES)]
        self.values.append(before | dict.fromkeys(keys, seqno))
        return [
            change("insert", [(None, [seqno * 1000 + number, seqno]) for number in range(INSERTS)], table="entries"),
            change("update", [([key, before[key]], [key, seqno]) for key in keys], table="counters"),
            change("insert", [(None, [seqno, seqno])], table="journal", key=()),
        ]

    def start(self, writers: int, messages: int, *options: str, **environ: str) -> Process:
        """Start `thl apply`."""
        document = {
            "service": self.config.service,
            "kafka": {"bootstrap": self.config.kafka.bootstrap, "retries": 5},
            "apply": {
                "checkpoint_dir": str(self.folder / "spark"),
                "heap": "512m",
                "batch_messages": messages,
                "continuous": False,
                "spark": {"spark.jars": ",".join(map(str, spark_kafka_jars()))},
            },
            "target": {"url": self.config.target.url.get_secret_value(), "audit": True, "writers": writers},
        }
        self.file.write_text(yaml.safe_dump(document))
        command = [THL, "apply", *options, "--config", str(self.file)]
        self.processes.append(Process(command, self.folder, **environ))
        return self.processes[-1]

    def killed(self, point: str, writers: int, messages: int) -> None:
        """Start `thl apply`, which is killed at a passage of a failpoint."""
        process = self.start(writers, messages, THL_CRASH_POINT=point)
        self.ended(process, -signal.SIGKILL)
        process.end()

    def ended(self, process: Process, code: int) -> None:
        for _ in attempts(PATIENCE):
            process.all()
            if process.popen.poll() is not None:
                break
        assert process.popen.poll() == code, process.log.read_text()[-3000:]

    def finish(self, writers: int, messages: int) -> None:
        """Apply everything, and compare."""
        process = self.start(writers, messages, "--to-seqno", str(self.log.seqno))
        self.ended(process, 0)
        assert self.check() == self.log.seqno

    def check(self) -> int | None:
        """Compare the target with the log at its event; None while a divided commit is open."""
        with self.reader.transaction():
            self.reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            seqno, consistent, version = self._one("SELECT seqno, consistent, schema_version FROM thl.thl_position")
            reasons = self._all("SELECT because FROM thl.thl_inconsistent_because")
            if not consistent:
                assert (version, reasons) == (2, [("channels",)])
                assert self._all("SELECT count(*)::int FROM thl.thl_intent") == [(1,)]
                return None
            assert (version, reasons, self._all("SELECT * FROM thl.thl_intent")) == (1, [], [])
            events = range(2, seqno + 1)
            assert self._all("SELECT id FROM shop.journal ORDER BY 1") == [(one,) for one in events]
            expected = [(one * 1000 + number, one) for one in events for number in range(INSERTS)]
            assert self._all("SELECT id, v FROM shop.entries ORDER BY 1") == expected
            assert dict(self._all("SELECT id, v FROM shop.counters")) == self.values[seqno]
            assert self._all("SELECT seqno FROM thl.thl_applied ORDER BY 1") == [(one,) for one in range(seqno + 1)]
            return int(seqno)

    def parts(self) -> tuple[int, int] | None:
        """Of the open intent the number of writers, and of those that have committed."""
        found = self._all(
            "SELECT i.writers, count(c.channel)::int FROM thl.thl_intent i LEFT JOIN thl.thl_channels c "
            "ON c.service = i.service AND c.seqno = i.last_seqno GROUP BY 1"
        )
        return found[0] if found else None

    def _one(self, query: str) -> Any:
        return self.reader.execute(query.encode()).fetchone()

    def _all(self, query: str) -> list[Any]:
        return self.reader.execute(query.encode()).fetchall()


@pytest.fixture
def bench(kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path) -> Iterator[Bench]:
    server = postgres_server
    base = f"postgresql://{server.user}:{server.password}@{server.host}:{server.port}"
    name = f"w{uuid.uuid4().hex[:10]}"
    with psycopg.connect(f"{base}/postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0".encode())
        made = Bench(tmp_path, kafka_broker.bootstrap, f"{base}/{name}")
        try:
            yield made
        finally:
            for process in made.processes:
                process.end()
            made.reader.close()
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def test_killed_between_two_writers_commits_and_again_while_making_it_whole_applies_each_event_once(
    bench: Bench,
) -> None:
    bench.write()
    bench.killed("target.after_channel", writers=4, messages=40)
    assert bench.check() is None
    writers, committed = bench.parts() or (0, 0)
    assert (writers, committed > 0) == (4, True)  # others commit at the same time
    bench.write()
    bench.killed("target.before_position", writers=2, messages=7)
    assert bench.parts() == (4, 4)
    bench.finish(writers=1, messages=1000)


STEPS: Final = (*faults.WRITERS, "target.before_position", "target.before_commit", "target.after_commit")


@pytest.mark.timeout(3600)
def test_forty_kills_at_every_step_with_other_writers_and_batches_apply_each_event_once(bench: Bench) -> None:
    random = Random(15)
    kills: Counter[str] = Counter()
    open_parts: Counter[str] = Counter()
    for number in range(40):
        bench.write()
        parts = bench.parts() if number else None
        point = STEPS[number % len(STEPS)]
        # One writer divides nothing but an open commit, of which it passes these steps in any case.
        writers = random.choice([2, 3, 4, 8])
        if parts is not None and point in ("target.before_intent", "target.after_intent", "target.before_position"):
            writers = random.choice([1, writers])
        passage = random.randint(1, 2) if "channel" in point else 1
        bench.killed(f"{point}:{passage}", writers, random.choice([25, 40, 70, 1000]))
        kills[point] += 1
        bench.check()
        if (now := bench.parts()) is not None:
            open_parts["none" if now[1] == 0 else "some" if now[1] < now[0] else "all"] += 1
        print(f"kill {number + 1}: {point}:{passage}, writers {writers}: {now or 'whole'}", flush=True)
    bench.finish(random.choice([1, 4]), 50)
    print(dict(kills), dict(open_parts), f"equal at event {bench.log.seqno}")
    assert all(open_parts[one] for one in ("none", "some", "all"))


def test_applier_stopped_before_its_writers_commit_is_fenced_by_a_newer_one(bench: Bench) -> None:
    """The server ends the sessions of the stopped one, for whose commits the newer one waits."""
    bench.write()
    zombie = bench.start(4, 40, THL_STOP_POINT="target.before_channel:2")
    stopped = psutil.Process(zombie.popen.pid)
    for _ in attempts(PATIENCE):
        zombie.all()
        if stopped.status() == psutil.STATUS_STOPPED:
            break
    assert stopped.status() == psutil.STATUS_STOPPED
    bench.finish(3, 50)
    stopped.send_signal(signal.SIGCONT)
    bench.ended(zombie, Fenced.exit_code)
    assert "a newer `thl apply` or `thl undo` has claimed the target" in zombie.log.read_text()
    assert bench.check() == bench.log.seqno
