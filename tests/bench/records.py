"""`python -m tests.bench.records`: what a row costs in embedded stores that the record store could stand on.

Each store loads rows of 200 bytes by key, then changes rows whose keys are chosen from 1 % of them (hot) and from all
(cold): it reads the newest version, checks it, writes the next one, and an index by seqno. lmdb is not installed by
`make`: pip install lmdb. Prints a line for each phase.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import click

from connector.records.database import Database

LATEST: Final = (1 << 64) - 1
PREFIX: Final = b"\0\1\2"
LOADED: Final = 5000  # rows of a commit of the load
CHANGED: Final = 2000  # rows of a commit of changes
EVENT: Final = 10  # rows of an event
POOL: Final = [os.urandom(100).hex().encode()[:184] for _ in range(4096)]


class Store(Protocol):
    """A store of versions."""

    def lookup(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The newest version of each key."""

    def append(self, seqno: int, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Add the versions of an event."""

    def commit(self) -> None:
        """Write the events so far, together."""

    def close(self) -> None:
        """Close it."""


class NewestUnderKey:
    """RocksDB as the record store has it: the newest version under its key, the replaced ones under their event."""

    def __init__(self, folder: Path, cache_bytes: int) -> None:
        self.database = Database(folder, cache_bytes=cache_bytes)
        self.before: dict[bytes, bytes | None] = {}
        self.puts: dict[bytes, bytes] = {}

    def lookup(self, keys: Sequence[bytes]) -> list[bytes | None]:
        found = self.database.get_many(list(keys))
        self.before.update(zip(keys, found, strict=True))
        return found

    def append(self, seqno: int, rows: Sequence[tuple[bytes, bytes]]) -> None:
        replaced = [key + (self.before.get(key) or b"") for key, _ in rows]
        self.puts.update(rows)
        self.puts[b"\xff" + struct.pack(">Q", seqno)] = b"".join(replaced)

    def commit(self) -> None:
        self.database.write(self.puts.items())
        self.before.clear()
        self.puts = {}

    def close(self) -> None:
        self.database.close()


class VersionsInRocks:
    """RocksDB with a key for each version: the row's, then the seqno, the newest first."""

    def __init__(self, folder: Path, cache_bytes: int) -> None:
        self.database = Database(folder, cache_bytes=cache_bytes)
        self.puts: list[tuple[bytes, bytes]] = []

    def lookup(self, keys: Sequence[bytes]) -> list[bytes | None]:
        at = self.database._db.iter()
        found = []
        for key in keys:
            at.seek(key)
            found.append(at.value() if at.valid() and at.key()[: len(key)] == key else None)
        return found

    def append(self, seqno: int, rows: Sequence[tuple[bytes, bytes]]) -> None:
        newest = struct.pack(">Q", LATEST - seqno)
        self.puts += [(key + newest, version) for key, version in rows]
        self.puts.append((b"\xff" + struct.pack(">Q", seqno), b"".join(key for key, _ in rows)))

    def commit(self) -> None:
        self.database.write(self.puts)
        self.puts = []

    def close(self) -> None:
        self.database.close()


class VersionsInLmdb:
    """LMDB with a key for each version; a commit is synced, as without that a crash can damage it."""

    def __init__(self, folder: Path, cache_bytes: int) -> None:
        import lmdb

        del cache_bytes  # the system's
        self.environment: Any = lmdb.open(str(folder), map_size=1 << 37, max_dbs=2, metasync=False, readahead=False)
        self.rows: Any = self.environment.open_db(b"rows")
        self.index: Any = self.environment.open_db(b"index")
        self.puts: list[tuple[bytes, bytes]] = []
        self.events: list[tuple[bytes, bytes]] = []

    def lookup(self, keys: Sequence[bytes]) -> list[bytes | None]:
        found = []
        with self.environment.begin(db=self.rows) as transaction:
            at = transaction.cursor()
            for key in keys:
                found.append(at.value() if at.set_range(key) and at.key()[: len(key)] == key else None)
        return found

    def append(self, seqno: int, rows: Sequence[tuple[bytes, bytes]]) -> None:
        newest = struct.pack(">Q", LATEST - seqno)
        self.puts += [(key + newest, version) for key, version in rows]
        self.events.append((struct.pack(">Q", seqno), b"".join(key for key, _ in rows)))

    def commit(self) -> None:
        self.puts.sort()
        with self.environment.begin(write=True) as transaction:
            transaction.cursor(db=self.rows).putmulti(self.puts)
            transaction.cursor(db=self.index).putmulti(self.events, append=True)
        self.puts, self.events = [], []

    def close(self) -> None:
        self.environment.close()


class VersionsInSqlite:
    """SQLite with a row for each version."""

    def __init__(self, folder: Path, cache_bytes: int) -> None:
        self.connection = sqlite3.connect(folder / "records.db", isolation_level=None)
        self.connection.executescript(
            f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-{cache_bytes >> 10};"
            "CREATE TABLE r (k BLOB, s INTEGER, v BLOB, PRIMARY KEY (k, s)) WITHOUT ROWID;"
            "CREATE TABLE i (s INTEGER PRIMARY KEY, k BLOB); BEGIN"
        )

    def lookup(self, keys: Sequence[bytes]) -> list[bytes | None]:
        newest = "SELECT v FROM r WHERE k = ? ORDER BY s DESC LIMIT 1"
        rows = (self.connection.execute(newest, (key,)).fetchone() for key in keys)
        return [None if row is None else row[0] for row in rows]

    def append(self, seqno: int, rows: Sequence[tuple[bytes, bytes]]) -> None:
        versions = [(key, seqno, version) for key, version in rows]
        self.connection.executemany("INSERT INTO r VALUES (?, ?, ?)", versions)
        self.connection.execute("INSERT INTO i VALUES (?, ?)", (seqno, b"".join(key for key, _ in rows)))

    def commit(self) -> None:
        self.connection.execute("COMMIT")
        self.connection.execute("BEGIN")

    def close(self) -> None:
        self.connection.execute("COMMIT")
        self.connection.close()


STORES: Final[dict[str, Callable[[Path, int], Store]]] = {
    "rocksdb": NewestUnderKey,
    "rocksdb-versions": VersionsInRocks,
    "lmdb": VersionsInLmdb,
    "sqlite": VersionsInSqlite,
}


@click.command()
@click.option("--rows", default=1_000_000, show_default=True)
@click.option("--changes", default=300_000, show_default=True, help="Rows that are changed in each phase.")
@click.option("--cache", default=64, show_default=True, help="MB of the store's cache.")
@click.option("--store", "stores", multiple=True, type=click.Choice(list(STORES)), default=list(STORES))
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), help="On the disk to measure.")
def main(rows: int, changes: int, cache: int, stores: Sequence[str], folder: Path | None) -> None:
    """Measure."""
    for name in stores:
        place = Path(tempfile.mkdtemp(prefix="records-", dir=folder))
        try:
            Run(name, STORES[name](place, cache << 20), place, rows).measure(changes)
        finally:
            shutil.rmtree(place)


class Run:
    """The phases of one store."""

    def __init__(self, name: str, store: Store, folder: Path, rows: int) -> None:
        self.name = name
        self.store = store
        self.folder = folder
        self.rows = rows
        self.seqno = 0
        self.rng = random.Random(1)

    def measure(self, changes: int) -> None:
        """Print the figures of each phase."""
        self._phase("load", self.rows, self._load)
        for name, keys in (("hot", self.rows // 100), ("cold", self.rows), ("cold", self.rows)):
            self._phase(name, changes, lambda keys=keys: self._change(keys, changes))
        self.store.close()

    def _load(self) -> None:
        for first in range(0, self.rows, LOADED):
            self._append([(key(number), version(number, 0)) for number in range(first, min(first + LOADED, self.rows))])
            self.store.commit()

    def _change(self, keys: int, changes: int) -> None:
        for _ in range(changes // CHANGED):
            numbers = list(dict.fromkeys(self.rng.randrange(keys) for _ in range(CHANGED)))
            for number, found in zip(numbers, self.store.lookup([key(number) for number in numbers]), strict=True):
                if found is None or found[:8] != struct.pack(">Q", number):
                    raise SystemExit(f"{self.name}: row {number} is {found!r}")
            rows = [(key(number), version(number, self.seqno)) for number in numbers]
            for first in range(0, len(rows), EVENT):
                self._append(rows[first : first + EVENT])
            self.store.commit()

    def _append(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        self.seqno += 1
        self.store.append(self.seqno, rows)

    def _phase(self, name: str, rows: int, work: Callable[[], None]) -> None:
        began, cpu, written = time.perf_counter(), time.process_time(), written_bytes()
        work()
        seconds, used = time.perf_counter() - began, time.process_time() - cpu
        figures = {
            "rows/s": round(rows / seconds),
            "CPU µs/row": round(used / rows * 1e6, 2),
            "written B/row": round((written_bytes() - written) / rows),
            "disk MB": sum(path.stat().st_blocks for path in self.folder.iterdir()) * 512 // 10**6,
            **memory(),
        }
        print(f"{self.name:17}{name:6}", figures, flush=True)


def key(number: int) -> bytes:
    return PREFIX + struct.pack(">Q", number)


def version(number: int, seqno: int) -> bytes:
    return struct.pack(">QQ", number, seqno) + POOL[(number * 31 + seqno) % len(POOL)]


def written_bytes() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


def memory() -> dict[str, int]:
    """MB of this process's memory, and of files that are mapped into it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = dict(line.split(":", 1) for line in lines if ":" in line)
    return {name: int(found[name].split()[0]) // 1000 for name in ("RssAnon", "RssFile")}


if __name__ == "__main__":
    main()
