"""PostgreSQL's limit: COPY into staging and a merge by sets, by psycopg, from prepared bytes.

Nothing of ours is in it. The rows are those of the workload in their order (its two connections one after the other);
each batch of row changes is reduced to its net rows before the clock starts, and rates count the row changes.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

from tests.bench.meter import Meter, usage
from tests.bench.peers.peer import Load
from tests.bench.result import Row
from tests.bench.workload import CHANGES

BATCHES = (1_000, 10_000, 100_000)
_COLUMNS = (
    "id bigint, a integer, b bigint, c numeric(18,4), d timestamp(6), e timestamptz, f float8, g varchar(100),"
    " h char(20), i bytea"
)
_NAMES = [column.split()[0] for column in _COLUMNS.split(", ")]
_DELETE = "DELETE FROM ceiling t USING staged s WHERE s.op = 'd' AND t.id = s.id"
_UPDATE = (
    "UPDATE ceiling t SET " + ", ".join(f"{n} = s.{n}" for n in _NAMES[1:]) + " FROM staged s"
    " WHERE s.op = 'u' AND t.id = s.id"
)
_INSERT = f"INSERT INTO ceiling SELECT {', '.join(_NAMES)} FROM staged WHERE op = 'i'"


@dataclass(frozen=True, slots=True)
class Batch:
    """Net rows as COPY's text, and the number of row changes behind them."""

    text: bytes
    changes: int
    rows: int


def measure(load: Load) -> list[Row]:
    """Measure; one row per batch size."""
    found = []
    for size in BATCHES:
        batches = list(_batches(load.kind, load.backlog.rows, size))
        figures = _run(load.place.postgres.dsn, batches, Meter(load.place.postgres.pid))
        found.append(Row(f"Kafka to PostgreSQL, {load.kind}: COPY + merge by hand, {size:,} a batch", figures))
    return found


def _run(dsn: str, batches: list[Batch], server: Meter) -> dict[str, float]:
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP TABLE IF EXISTS ceiling")
        connection.execute(f"CREATE TABLE ceiling ({_COLUMNS}, PRIMARY KEY (id))".encode())
        connection.execute(f'CREATE TEMP TABLE staged (op "char", {_COLUMNS})'.encode())
        connection.commit()
        backend = connection.info.backend_pid
        before, whole, began = usage(backend), server.read(), time.perf_counter()
        for batch in batches:
            cursor = connection.cursor()
            with cursor.copy("COPY staged FROM STDIN") as copy:
                copy.write(batch.text)
            for statement in (_DELETE, _UPDATE, _INSERT, "TRUNCATE staged"):
                cursor.execute(statement.encode())
            connection.commit()
        seconds, spent = time.perf_counter() - began, usage(backend) - before
        total = server.read() - whole
        connection.execute("DROP TABLE ceiling")
    changes = sum(batch.changes for batch in batches)
    return {
        "rows": changes,
        "rows/s": round(changes / seconds),
        "CPU s/M backend": round(spent.cpu_seconds / changes * 1e6, 2),
        "CPU s/M postgres": round(total.cpu_seconds / changes * 1e6, 2),
        "survive %": round(sum(batch.rows for batch in batches) / changes * 100, 1),
    }


def _batches(kind: str, rows: int, size: int) -> Iterator[Batch]:
    """Net changes per batch: each row before the batch (present or not) compared with after it."""
    net: dict[int, tuple[bool, bytes | None]] = {}  # key → (was it there before the batch?, its text now)
    there: dict[int, bytes] = {}
    changes = 0
    for key, text in _changes(kind, rows, there):
        existed = net[key][0] if key in net else key in there
        net[key] = (existed, text)
        if text is None:
            there.pop(key)
        else:
            there[key] = text
        changes += 1
        if changes == size:
            yield _batch(net, changes)
            net, changes = {}, 0
    if changes:
        yield _batch(net, changes)


def _batch(net: dict[int, tuple[bool, bytes | None]], changes: int) -> Batch:
    lines = []
    for key, (existed, text) in net.items():
        if text is not None:
            lines.append((b"u\t" if existed else b"i\t") + text)
        elif existed:
            lines.append(b"d\t%d" % key + b"\t\\N" * 9 + b"\n")
    return Batch(b"".join(lines), changes, len(lines))


def _changes(kind: str, rows: int, there: dict[int, bytes]) -> Iterator[tuple[int, bytes | None]]:
    if kind == "bulk":
        yield from ((n, _text(n)) for n in range(rows))
        return
    for t in range(rows // CHANGES):
        n = t * 3
        yield from ((key, _text(key)) for key in range(n, n + 3))
        old = max(n - 3000, 0)
        yield old, _changed(there[old])
        yield (n + 1 if t < 2001 else n - 6001), None


def _text(n: int) -> bytes:
    """A line of COPY's text format, as `workload` makes the values."""
    digest = hashlib.sha256(str(n).encode()).hexdigest()
    at = f"{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}"
    day = 1 + n // 86400 % 27
    late = r"\N" if n % 5 == 0 else f"2026-01-{day:02} {at}+00"
    binary = r"\N" if n % 3 == 0 else r"\\x" + digest[:32] * 3
    values = (
        f"{n}\t{n * 7 % 2147483647}\t{n * 1000003}\t{n % 1000000 / 13:.4f}\t2026-01-{day:02} {at}.678901\t{late}"
        f"\t{n / 7!r}\t{digest[:32] * 3}\t{digest[-20:]}\t{binary}\n"
    )
    return values.encode()


def _changed(text: bytes) -> bytes:
    fields = text.split(b"\t")
    fields[1] = b"%d" % (int(fields[1]) + 1)
    fields[7] = fields[7][::-1]
    return b"\t".join(fields)
