"""Spark's checkpoints in the configured folder are ignored: the applier resumes at the target's position.

They are real ones, taken from running appliers: an older one of this log, one that is ahead of the target, and one of
another log. Each is laid where Spark would look if the folder itself were its checkpoint, and beside it under the
names that our own starts give theirs.
"""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.kafka import Kafka
from connector.config.model import Config
from connector.demo.stage import Worker
from connector.fetching.jars import spark_kafka_jars
from tests.faults.rig import alive, descendants
from tests.support.clock import PATIENCE
from tests.support.fragments import change, record, statement
from tests.support.log_writer import LogWriter
from tests.support.servers.environment import Broker

pytestmark = [pytest.mark.servers, pytest.mark.faults, pytest.mark.long]

CLOCK = SystemClock()
CREATE = "CREATE TABLE orders (id INT NOT NULL PRIMARY KEY, v INT)"
DEAD = 4_190_000  # above the usual pid_max, so no process has it


class Log:
    """A log, its target, and `thl apply` between them."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        folder.mkdir()
        self.folder = folder
        self.target = folder / "target.db"
        self.checkpoints = folder / "spark"
        url = SecretStr(f"sqlite:///{self.target}")
        self.config = Config(
            service=f"c{uuid.uuid4().hex[:10]}", kafka=Kafka(bootstrap=bootstrap), target=Target(url=url)
        )
        self.file = folder / "thl.yaml"
        spark = {"spark.jars": ",".join(map(str, spark_kafka_jars()))}
        document = {
            "service": self.config.service,
            "kafka": {"bootstrap": bootstrap},
            "apply": {"checkpoint_dir": str(self.checkpoints), "heap": "512m", "batch_messages": 20, "spark": spark},
            "target": {"url": url.get_secret_value(), "audit": True},
        }
        self.file.write_text(yaml.safe_dump(document))
        self.log = LogWriter(self.config)
        self.log.online()
        self.log.events([record(0, [statement(CREATE)], kind="ddl", shard="#UNKNOWN")])
        self.applier = Worker("apply", self.file, folder / "apply.log")

    def insert(self, count: int) -> None:
        """Append a number of events of one row."""
        for seqno in range(self.log.seqno + 1, self.log.seqno + 1 + count):
            self.log.events([record(seqno, [change("insert", [(None, [seqno, seqno])])], last_barrier=0)])

    def apply(self) -> None:
        """Start the applier if needed, and wait until the target has every event."""
        self.applier.start()
        deadline = CLOCK.monotonic() + PATIENCE
        while self.applied() != list(range(self.log.seqno + 1)):
            assert self.applier.running, self.applier.log_tail()
            assert CLOCK.monotonic() < deadline, f"{self.applied()[-3:]}\n{self.applier.log_tail()}"
            CLOCK.sleep(0.1)
        assert self.rows() == list(range(1, self.log.seqno + 1))

    def checkpoint(self, copy: Path) -> Path:
        """Copy the checkpoint that the running applier's Spark has written so far."""
        offsets, *_ = self.checkpoints.glob("thl-apply-*/thl-apply-*/offsets")  # one of each profile that reads
        assert (offsets.parent / "metadata").exists()
        return Path(shutil.copytree(offsets.parent, copy, ignore_dangling_symlinks=True))

    def end(self) -> None:
        """Kill the applier and its children."""
        left = descendants(self.applier)
        self.applier.kill()
        for one in left:
            if alive(one):
                one.kill()

    def applied(self) -> list[int]:
        return self._numbers("SELECT seqno FROM thl_applied ORDER BY rowid")

    def rows(self) -> list[int]:
        return self._numbers('SELECT id FROM "shop.orders" ORDER BY id')

    def _numbers(self, query: str) -> list[int]:
        if not self.target.exists():
            return []
        with closing(sqlite3.connect(self.target, timeout=30)) as db:
            try:
                return [row[0] for row in db.execute(query)]
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    return []
                raise


@pytest.fixture
def log(kafka_broker: Broker, tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "ours", kafka_broker.bootstrap)
    yield made
    made.end()


@pytest.fixture
def foreign(kafka_broker: Broker, tmp_path: Path) -> Iterator[Path]:
    """The checkpoint of another, longer log."""
    made = Log(tmp_path / "another", kafka_broker.bootstrap)
    made.insert(200)
    made.apply()
    copy = made.checkpoint(tmp_path / "foreign")
    made.end()
    yield copy


def test_stale_newer_and_foreign_checkpoints_are_ignored(log: Log, foreign: Path, tmp_path: Path) -> None:
    log.insert(30)
    log.apply()
    stale = log.checkpoint(tmp_path / "stale")
    log.insert(40)
    log.apply()
    with closing(sqlite3.connect(log.target)) as db, closing(sqlite3.connect(tmp_path / "earlier.db")) as copy:
        db.backup(copy)
    log.insert(50)
    log.apply()
    newer = log.checkpoint(tmp_path / "newer")
    log.end()

    for found in (stale, newer, foreign):
        shutil.rmtree(log.checkpoints)
        shutil.copytree(found, log.checkpoints)
        for name in ("thl-apply-1-abcdefgh", f"thl-apply-{DEAD}-abcdefgh", "thl-apply"):
            shutil.copytree(found, log.checkpoints / name)
        for file in log.folder.glob("target.db*"):
            file.unlink()
        shutil.copy(tmp_path / "earlier.db", log.target)
        log.insert(10)
        log.apply()
        log.end()
