"""docs/runbooks.md, "A disk is full": real disks that are full, room that is made, and nothing lost or doubled."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import yaml

from connector.errors import DiskUnavailable
from connector.kafka.log_reader import LogReader
from connector.producer.records.report import report
from connector.records.database import Database
from connector.sandbox.kafka import KafkaBroker
from tests.integration.applier.test_apply_process import scene
from tests.support.apply_process import THL, Scene
from tests.support.producing import Bench, check, finished, fragments, table_of, until
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer
from tests.support.written_tables import asked

__all__ = ["scene"]  # a fixture

pytestmark = [pytest.mark.servers, pytest.mark.long]


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of its own, of a size."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here, so no disk was filled: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, left: int) -> Path:
    """Fill a disk but for some bytes; return the file to delete."""
    filler = folder / "filler"
    room = os.statvfs(folder)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize - left)
    return filler


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 64) as folder:
        folder.chmod(0o700)
        yield folder


def set_fields(scene: Scene, **sections: dict[str, object]) -> None:
    document = yaml.safe_load(scene.file.read_text())
    for name, fields in sections.items():
        document[name] = {**document.get(name, {}), **fields}
    scene.file.write_text(yaml.safe_dump(document))


def apply(scene: Scene, seqno: int) -> int:
    return scene.start(THL, "apply", "--to-seqno", str(seqno)).wait()


@contextmanager
def full(
    scene: Scene, disk: Path, error: str, *, rows: int = 20, size: int = 40_000, left: int = 20_000
) -> Iterator[int]:
    """The last event while its disk is full and the applier has ended with an error; with room it is applied.

    Args:
        scene: the applier and its log.
        disk: the disk.
        error: a part of the error.
        rows, size: the events that have no room, and the bytes of each.
        left: bytes of the disk that are left to them.
    """
    assert apply(scene, scene.insert(5)) == 0, scene.log_tail()
    filler = fill(disk, left)
    last = scene.insert(rows, size=size)
    assert apply(scene, last) == 4
    assert error in scene.log_tail()
    yield last
    filler.unlink()
    assert apply(scene, last) == 0, scene.log_tail()


def test_a_full_disk_of_the_relay_ends_the_applier_before_the_target_commits(scene: Scene, disk: Path) -> None:
    set_fields(scene, relay={"dir": str(disk / "relay"), "retention": 1e6})
    with full(scene, disk, "cannot be stored in the relay: No space left on device", size=4000) as last:
        assert scene.applied()[-1] < last
    scene.reaches(last)


def test_a_full_disk_of_a_sqlite_target_ends_the_applier_after_its_retries(scene: Scene, disk: Path) -> None:
    scene.target = disk / "target.db"
    set_fields(scene, target={"url": f"sqlite:///{scene.target}", "retries": 2})
    with full(scene, disk, "the disk of target.url is full or fails") as last:
        pass
    scene.reaches(last)


def test_a_full_disk_of_postgresql_ends_the_applier_after_its_retries(
    scene: Scene, disk: Path, postgres_server: DatabaseServer
) -> None:
    """A tablespace on a disk of its own: were the disk of the WAL full, the server would end."""
    name, server = f"f{uuid.uuid4().hex[:8]}", postgres_server
    space = disk / "space"
    space.mkdir()
    owner = Path(f"/proc/{_process(server)}").stat()
    for folder in (disk, space):
        os.chown(folder, owner.st_uid, owner.st_gid)
    for parent in disk.parents:  # which pytest keeps for its own user
        parent.chmod(parent.stat().st_mode | 0o111)
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute(f"CREATE TABLESPACE {name} LOCATION '{space}'".encode())
        admin.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0 TABLESPACE {name}".encode())
        url = f"postgresql://{server.user}:{server.password}@{server.host}:{server.port}/{name}"
        try:
            set_fields(scene, target={"url": url, "retries": 2})
            with full(scene, disk, "No space left on device", rows=40, left=50_000) as last:
                pass
            with psycopg.connect(url) as reader:
                ids = [row[0] for row in reader.execute("SELECT id FROM shop.orders ORDER BY id")]
            assert ids == list(range(1, last + 1))
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
            admin.execute(f"DROP TABLESPACE {name}".encode())


def _process(server: DatabaseServer) -> int:
    with psycopg.connect(server.dsn) as session:
        return session.info.backend_pid


def test_a_full_disk_of_the_broker_loses_no_transaction(mysql_server: SqlServer, tmp_path: Path) -> None:
    with small_disk(tmp_path / "broker", 200) as disk:
        broker = KafkaBroker(disk, die_with_parent=True)
        with broker:
            bench = Bench(mysql_server, broker, tmp_path, settings={"THL_KAFKA__RETRIES": "2"})
            bench.make_table()
            with bench.start() as running:
                running.loaded()
                filler = fill(disk, 50_000)  # the rows compress well
                for _ in range(4):
                    bench.insert_many(20_000)
                assert running.ended() == 4
            broker.kill()
            filler.unlink()
        with broker, bench.start() as running:
            running.online()
            bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('last')")
            rows = bench.rows()
            until(lambda: len(table_of(finished(fragments(bench.config)))) == len(rows))
            assert len(rows) == 80_003
            check(bench)
            with LogReader(bench.config) as reader:
                assert reader.control().epochs[-1].epoch >= 2
            assert running.stop() == 0


def test_closing_a_record_store_on_a_full_disk_names_the_disk_too(tmp_path: Path) -> None:
    """Closing fails with another error of the library, and is the last that a producer's user sees."""
    with small_disk(tmp_path / "disk", 8) as disk:
        disk.chmod(0o700)
        database = Database(disk / "records", cache_bytes=1 << 20)
        with pytest.raises(DiskUnavailable, match="is full"):
            for number in range(1000):
                database.write([(b"%d" % number, os.urandom(20_000))])
        with pytest.raises(DiskUnavailable, match="the disk of the record store is full"):
            database.close()


def test_a_full_disk_of_the_record_store_stops_no_load(
    mysql_server: SqlServer, kafka_broker: Broker, disk: Path, tmp_path: Path
) -> None:
    records = disk / "records"
    settings = {"THL_SOURCE__START": "now", "THL_SOURCE__RECORDS__DIR": str(records)}
    bench = Bench(mysql_server, kafka_broker, tmp_path, settings=settings)
    bench.make_table()
    bench.insert_many(40_000)
    bench.sql(f"UPDATE {bench.service}.t SET v = concat(sha2(id, 256), sha2(-id, 256))")
    with bench.start() as running:
        assert running.online().stop() == 0
    filler = fill(disk, 1_000_000)
    assert asked(bench, f"{bench.service}.t") == 0
    with bench.start() as running:
        assert running.ended() == DiskUnavailable.exit_code
        assert "the disk of the record store is full" in running.text
    filler.unlink()
    with bench.start() as running:
        assert running.loaded().stop() == 0, running.text
    (stored,) = report(bench.config).tables
    assert (stored.rows, stored.missing) == (40_002, "")
