"""The relay with `thl` as processes: an archive, and a target made consistent when Kafka is gone for good."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
import yaml

from connector.clock import SystemClock
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.fetching.jars import spark_kafka_jars
from connector.relay.folder import Lock
from connector.relay.reader import RelayReader
from tests.support.apply_process import COLUMNS, REPOSITORY, THL, Process, Scene
from tests.support.clock import PATIENCE
from tests.support.fragments import change, record, statement
from tests.support.log_writer import LogWriter
from tests.support.relay import names, seqnos
from tests.support.servers.environment import Broker, DatabaseServer, kafka_for_tests

ROWS = 400  # of each event
KILLS = 40
TABLES = ("orders", "items")
TYPED: Any = {"columns": COLUMNS}
CLOSED = "127.0.0.1:1"  # no broker
CHANNELS = "SELECT channel, seqno FROM thl.thl_channels ORDER BY channel"


def thl(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [THL, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


@pytest.fixture
def archive(kafka_broker: Broker, tmp_path: Path) -> Iterator[Scene]:
    """A SQLite target whose applier keeps a relay."""
    made = Scene(tmp_path, kafka_broker.bootstrap)
    keep_relay(made.file, tmp_path / "relay", retention=1e6, max_file_bytes=4000)
    yield made
    for process in made.processes:
        process.end()


def keep_relay(file: Path, folder: Path, **more: object) -> None:
    document = yaml.safe_load(file.read_text())
    document["relay"] = {"dir": str(folder), **more}
    file.write_text(yaml.safe_dump(document))


def without_file(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("- FILE = ")]


def test_the_archive_is_listed_as_the_topic_and_fills_another_target(archive: Scene, tmp_path: Path) -> None:
    archive.insert(40)
    archive.log.online()
    archive.insert(20, size=300)
    last = archive.insert(1, size=9000)
    assert archive.start(THL, "apply", "--to-seqno", str(last)).wait() == 0, archive.log_tail()
    folder = tmp_path / "relay"
    assert len(names(folder)) > 3
    on_kafka = thl(tmp_path, "list").stdout
    in_files = thl(tmp_path, "list", "--file", str(folder)).stdout
    assert without_file(in_files) == without_file(on_kafka)
    assert set(re.findall(r"^- FILE = (.*)$", in_files, re.MULTILINE)) == set(names(folder))
    some = ("--from-seqno", "7", "--to-seqno", "50", "--specs")
    assert without_file(thl(tmp_path, "list", *some, "--file", str(folder)).stdout) == without_file(
        thl(tmp_path, "list", *some).stdout
    )
    index = [
        json.loads(line)
        for line in thl(tmp_path, "index", "--file", str(folder), "--format", "json").stdout.splitlines()
    ]
    assert [one["file"] for one in index] == names(folder)
    assert [one["firstSeqno"] for one in index[1:]] == [one["lastSeqno"] + 1 for one in index[:-1]]
    assert index[-1]["lastSeqno"] == last

    other = tmp_path / "other.db"
    words = (
        "--set",
        f"target.url=sqlite:///{other}",
        "--set",
        f"kafka.bootstrap={CLOSED}",
        "--from-relay",
        str(folder),
    )
    first = thl(tmp_path, "apply", *words, "--to-seqno", "30")
    assert "stopped after event 30" in first.stderr
    thl(tmp_path, "apply", *words)
    assert rows_of(other) == rows_of(archive.target)
    thl(tmp_path, "purge", "--to-seqno", str(index[1]["lastSeqno"]), "--yes")
    assert seqnos(folder) == list(range(index[2]["firstSeqno"], last + 1))
    empty = ("--set", f"target.url=sqlite:///{tmp_path / 'third.db'}", "--from-relay", str(folder))
    refused = thl(tmp_path, "apply", *empty, code=5)
    assert f"the relay lacks events 0..{index[2]['firstSeqno'] - 1}" in refused.stderr


def rows_of(file: Path) -> list[Any]:
    with sqlite3.connect(file) as db:
        (table,) = db.execute("SELECT target_name FROM thl_tables WHERE table_name = 'orders'").fetchone()
        found = db.execute(f'SELECT * FROM "{table}" ORDER BY id').fetchall()
        position = db.execute("SELECT log_id, seqno, epoch, event_id, gtid_set, offsets FROM thl_position").fetchall()
    return [*found, *position]


@pytest.mark.long
def test_killed_appliers_leave_a_relay_without_gaps(archive: Scene, tmp_path: Path) -> None:
    for point in ("relay.after_write:3", "relay.after_sync:2", "apply.after_commit:2"):
        for _ in range(8):
            archive.insert(10, size=500)
        process = archive.start(THL, "apply", "--set", "apply.batch_messages=20", THL_CRASH_POINT=point)
        process.wait()
        process.end()
    last = archive.insert(5)
    process = archive.start(THL, "apply", "--to-seqno", str(last))
    assert process.wait() == 0, archive.log_tail()
    assert seqnos(tmp_path / "relay") == list(range(last + 1))
    archive.reaches(last)


@pytest.mark.long
def test_a_full_disk_is_one_error_and_the_target_does_not_change(archive: Scene, tmp_path: Path) -> None:
    archive.insert(10)
    program = (
        "import os, sys, types\n"
        "from connector.cli import main\n"
        "from connector.relay import appending\n"
        "def full(number, content):\n"
        "    raise OSError(28, 'No space left on device')\n"
        "appending.os = types.SimpleNamespace(**{**vars(os), 'write': full})\n"
        "sys.argv[1:1] = ['apply']\n"
        "main()"
    )
    process = archive.start(sys.executable, "-c", program)
    assert process.wait() == 2
    text = process.log.read_text()
    assert "No space left on device; nothing of them was applied" in text
    assert "relay.dir" in text
    assert archive.applied() == []


def test_a_cluster_is_refused_by_the_option(archive: Scene, tmp_path: Path) -> None:
    refused = thl(tmp_path, "apply", "--set", "apply.master=spark://127.0.0.1:7077", code=2)
    assert "relay.dir" in refused.stderr
    assert "local[N]" in refused.stderr


class Parallel:
    """A PostgreSQL target with four writers, whose applier keeps a relay.

    Event n > 0 inserts rows into two tables, and changes the first row of each: the content at each seqno is known.
    """

    def __init__(self, folder: Path, bootstrap: str, postgres: DatabaseServer) -> None:
        self.folder = folder
        self.relay = folder / "relay"
        database = f"r{uuid.uuid4().hex[:10]}"
        with psycopg.connect(postgres.dsn, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {database}".encode())
        self.url = f"postgresql://{postgres.user}:{postgres.password}@{postgres.host}:{postgres.port}/{database}"
        self.service = f"r{uuid.uuid4().hex[:10]}"
        jars = ",".join(map(str, spark_kafka_jars()))
        document = {
            "service": self.service,
            "kafka": {"bootstrap": bootstrap, "retries": 1},
            "apply": {"checkpoint_dir": str(folder / "spark"), "heap": "512m", "spark": {"spark.jars": jars}},
            "target": {"url": self.url, "writers": 4},
            "relay": {"dir": str(self.relay), "max_file_bytes": 100_000},
        }
        (folder / "thl.yaml").write_text(yaml.safe_dump(document))
        self.log = LogWriter(Config(service=self.service, kafka=Kafka(bootstrap=bootstrap)))
        self.log.online()
        creates = [statement(f"CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY, v LONGTEXT)") for name in TABLES]
        self.log.events([record(0, creates, kind="ddl", shard="#UNKNOWN")])
        rows = [change("insert", [(None, [0, "0"])], table=name) | TYPED for name in TABLES]
        self.log.events([record(1, rows, last_barrier=0)])

    def events(self, count: int) -> None:
        first = self.log.seqno + 1
        self.log.events([record(n, self._changes(n), last_barrier=0) for n in range(first, first + count)])

    def _changes(self, n: int) -> list[dict[str, Any]]:
        found = []
        for name in TABLES:
            rows = [(None, [n * ROWS + at, f"v{n}"]) for at in range(ROWS)]
            found += [
                change("insert", rows, table=name) | TYPED,
                change("update", [([0, str(n - 1 if n > 2 else 0)], [0, str(n)])], table=name) | TYPED,
            ]
        return found

    def content(self, seqno: int) -> list[tuple[int, str]]:
        """The content of each table after an event."""
        rows = [(n * ROWS + at, f"v{n}") for n in range(2, seqno + 1) for at in range(ROWS)]
        return [(0, str(seqno) if seqno > 1 else "0"), *rows] if seqno else []

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, autocommit=True) as db:
            return db.execute(sql.encode()).fetchall()

    def table(self, name: str) -> list[tuple[Any, ...]]:
        return self.query(f"SELECT id, v FROM shop.{name} ORDER BY id")

    def position(self) -> tuple[int, bool]:
        ((seqno, consistent),) = self.query("SELECT seqno, consistent FROM thl.thl_position")
        return seqno, consistent

    def applier(self, *words: str, **environ: str) -> Process:
        command = [THL, "apply", "--config", str(self.folder / "thl.yaml"), *words]
        return Process(command, self.folder, **environ)

    def killed(self, point: str) -> None:
        """Run an applier until it dies at a point."""
        process = self.applier("--set", "apply.batch_messages=1000", THL_CRASH_POINT=point)
        code = process.wait()
        process.end()
        assert code == -9, process.log.read_text()[-3000:]

    def recovered(self, *, code: int = 0) -> str:
        """Run an applier without a broker; return what it prints."""
        (self.folder / "apply.log").unlink(missing_ok=True)
        process = self.applier("--set", f"kafka.bootstrap={CLOSED}")
        assert process.wait() == code, process.log.read_text()[-3000:]
        return process.log.read_text()

    def check_consistent(self) -> int:
        seqno, consistent = self.position()
        assert consistent
        assert self.query("SELECT * FROM thl.thl_intent") == []
        assert self.query("SELECT * FROM thl.thl_inconsistent_because") == []
        for name in TABLES:
            assert self.table(name) == self.content(seqno)
        return seqno


def test_a_target_within_a_commit_is_made_consistent_when_kafka_is_gone(
    postgres_server: DatabaseServer, tmp_path: Path
) -> None:
    with kafka_for_tests(tmp_path / "kafka") as broker:
        made = Parallel(tmp_path, broker.bootstrap, postgres_server)
        made.events(30)
        made.killed("target.after_channel:2")
        broker.kill()
        shutil.rmtree(tmp_path / "kafka")
    seqno, consistent = made.position()
    assert not consistent
    ((first, last),) = made.query("SELECT first_seqno, last_seqno FROM thl.thl_intent")
    assert first == seqno + 1
    with closing(Lock(made.relay, SystemClock())):
        assert "another process uses the relay" in made.recovered(code=2)
    assert made.position() == (seqno, consistent)
    lines = made.recovered().splitlines()
    ends = f"no broker answers; made whole from the relay: the target is consistent at event {last} of service "
    assert lines[-1] == ends + made.service
    assert made.check_consistent() == last


@pytest.mark.parametrize(
    "damage", ["flipped", *(pytest.param(one, marks=pytest.mark.long) for one in ("no folder", "truncated", "foreign"))]
)
def test_a_relay_that_cannot_serve_is_refused_and_the_target_does_not_change(
    kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path, damage: str
) -> None:
    made = Parallel(tmp_path, kafka_broker.bootstrap, postgres_server)
    made.events(15)
    made.killed("target.after_channel:2")
    ((first, last),) = made.query("SELECT first_seqno, last_seqno FROM thl.thl_intent")
    tables = {name: made.table(name) for name in TABLES}
    intent, channels = (
        made.query("SELECT * FROM thl.thl_intent"),
        made.query(CHANNELS),
    )
    newest = RelayReader(made.relay).files[-1].path
    content = bytearray(newest.read_bytes())
    match damage:
        case "no folder":
            made.relay.rename(tmp_path / "elsewhere")
        case "truncated":
            os.truncate(newest, len(content) // 2)
        case "flipped":
            content[len(content) // 2] ^= 4
            newest.write_bytes(content)
        case "foreign":
            with psycopg.connect(made.url) as db:
                db.execute("UPDATE thl.thl_position SET log_id = %s", ("0" * 32,))
    text = made.recovered(code={"no folder": 2, "foreign": 8}.get(damage, 5))
    assert f"{first}..{last}" in text
    assert {name: made.table(name) for name in TABLES} == tables
    assert made.query("SELECT * FROM thl.thl_intent") == intent
    assert made.query(CHANNELS) == channels


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_forty_kills_are_made_consistent_without_a_broker(
    kafka_broker: Broker, postgres_server: DatabaseServer, tmp_path: Path
) -> None:
    made = Parallel(tmp_path, kafka_broker.bootstrap, postgres_server)
    rng = Random(15)
    within = 0
    for number in range(KILLS):
        made.events(rng.randrange(8, 25))
        point = rng.choice(
            ["target.after_intent", "target.before_channel", "target.after_channel", "target.before_position"]
        )
        writers = rng.choice([2, 4, 8])
        count = rng.randrange(1, min(writers, 3) + 1) if point.endswith("channel") else 1
        process = made.applier("--set", f"target.writers={writers}", THL_CRASH_POINT=f"{point}:{count}")
        assert process.wait() == -9, process.log.read_text()[-3000:]
        process.end()
        open_intent = made.query("SELECT last_seqno FROM thl.thl_intent")
        assert open_intent, (number, point)
        committed = made.query(f"SELECT 1 FROM thl.thl_channels WHERE seqno = {open_intent[0][0]}")
        text = made.recovered()
        assert "made whole from the relay: the target is consistent at event" in text
        assert made.check_consistent() == (open_intent[0][0] if committed else made.position()[0])
        within += bool(committed)
    assert within > KILLS // 3
    made.recovered(code=4)  # nothing to make whole: the brokers are waited for as always
    process = made.applier("--to-seqno", str(made.log.seqno))
    assert process.wait() == 0
    assert made.check_consistent() == made.log.seqno
