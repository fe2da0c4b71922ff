"""docs/runbooks.md, "The target was restored from a backup": the steps, with `thl` as processes."""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import psycopg
import pytest
import yaml

from tests.support.apply_process import THL, Scene
from tests.support.long import long
from tests.support.servers.environment import Broker, DatabaseServer


class Backed(Protocol):
    """A target of which a copy is taken and put back.

    Attributes:
        url: of the target.
    """

    url: str

    def back_up(self) -> None:
        """Take the copy."""

    def restore(self) -> None:
        """Put it back in the target's place."""

    def rows(self) -> list[int]:
        """The keys of the table `orders`."""

    def position(self) -> int:
        """The last event."""


class SqliteBacked:
    def __init__(self, folder: Path) -> None:
        self.file, self.copy = folder / "target.db", folder / "backup.db"
        self.url = f"sqlite:///{self.file}"

    def back_up(self) -> None:
        shutil.copy(self.file, self.copy)

    def restore(self) -> None:
        for left in self.file.parent.glob("target.db*"):
            left.unlink()
        shutil.copy(self.copy, self.file)

    def rows(self) -> list[int]:
        with sqlite3.connect(self.file) as db:
            (table,) = db.execute("SELECT target_name FROM thl_tables WHERE table_name = 'orders'").fetchone()
            return [row[0] for row in db.execute(f'SELECT id FROM "{table}" ORDER BY id')]

    def position(self) -> int:
        with sqlite3.connect(self.file) as db:
            return int(db.execute("SELECT seqno FROM thl_position").fetchone()[0])


class PostgresBacked:
    def __init__(self, server: DatabaseServer) -> None:
        self.name = f"b{uuid.uuid4().hex[:8]}"
        self.admin = psycopg.connect(server.dsn, autocommit=True)
        self.run(f"CREATE DATABASE {self.name} ENCODING 'UTF8' TEMPLATE template0")
        self.url = f"postgresql://{server.user}:{server.password}@{server.host}:{server.port}/{self.name}"

    def run(self, sql: str) -> None:
        self.admin.execute(sql.encode())

    def back_up(self) -> None:
        self.run(f"CREATE DATABASE {self.name}_backup TEMPLATE {self.name}")

    def restore(self) -> None:
        self.run(f"DROP DATABASE {self.name} WITH (FORCE)")
        self.run(f"CREATE DATABASE {self.name} TEMPLATE {self.name}_backup")

    def rows(self) -> list[int]:
        return self.numbers("SELECT id FROM shop.orders ORDER BY id")

    def position(self) -> int:
        (seqno,) = self.numbers("SELECT seqno FROM thl.thl_position")
        return seqno

    def numbers(self, sql: str) -> list[int]:
        with psycopg.connect(self.url) as reader:
            return [row[0] for row in reader.execute(sql.encode()).fetchall()]

    def close(self) -> None:
        for name in (self.name, f"{self.name}_backup"):
            self.run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self.admin.close()


@pytest.fixture(params=["sqlite", *long("postgres")])
def target(request: pytest.FixtureRequest, postgres_server: DatabaseServer, tmp_path: Path) -> Iterator[Backed]:
    if request.param == "sqlite":
        yield SqliteBacked(tmp_path)
        return
    made = PostgresBacked(postgres_server)
    yield made
    made.close()


# That a relay refuses a target which was set back, tests/unit/relay/test_starting.py shows, too.
@pytest.fixture(params=[False, *long(True)], ids=["no relay", "relay"])
def scene(request: pytest.FixtureRequest, target: Backed, kafka_broker: Broker, tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, kafka_broker.bootstrap)
    document = yaml.safe_load(made.file.read_text())
    document["target"]["url"] = target.url
    if request.param:
        document["relay"] = {"dir": str(tmp_path / "relay"), "retention": 1e6}
    made.file.write_text(yaml.safe_dump(document))
    yield made
    for process in made.processes:
        process.end()


def test_a_restored_target_goes_on_after_its_own_event(scene: Scene, target: Backed, tmp_path: Path) -> None:
    def applies_to(seqno: int) -> int:
        return scene.start(THL, "apply", "--to-seqno", str(seqno)).wait()

    backed_up = scene.insert(10)
    assert applies_to(backed_up) == 0, scene.log_tail()
    target.back_up()
    last = scene.insert(10)
    assert applies_to(last) == 0, scene.log_tail()
    everything = target.rows()

    target.restore()
    assert (target.position(), len(target.rows())) == (backed_up, 10)
    if (tmp_path / "relay").is_dir():
        assert applies_to(last) == 2
        assert "or of this one before it was set back" in scene.log_tail()
        assert f"thl purge --from-seqno {backed_up + 1}" in scene.log_tail()
        assert target.position() == backed_up
        assert scene.start(THL, "purge", "--from-seqno", str(backed_up + 1), "--yes").wait() == 0, scene.log_tail()
    last = scene.insert(5)
    assert applies_to(last) == 0, scene.log_tail()
    assert target.rows() == [*everything, *range(last - 4, last + 1)]
    assert target.position() == last
