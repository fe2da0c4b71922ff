"""`python -m tests.bench.load`: the initial load of six tables to Kafka, beside plain SELECTs of the same rows.

The tables have an integer key, a skewed one, a composite one and a text as key; one has no key, one has values of
16 MiB. A plain SELECT is read from the socket and thrown away, by as many connections as the load has. A figure is void
if the log is incomplete.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from connector.demo.workload import Connect
from tests.bench import workload
from tests.bench.drain import PRODUCER, PUBLISHED, drain
from tests.bench.logcount import count
from tests.bench.meter import Usage
from tests.bench.result import Row, Sheet, out_option
from tests.bench.site import CLOCK, Service, Site, site

COLUMNS = workload.TABLE.partition("PRIMARY KEY")[2].rpartition(")")[0]
# Table → its key, the expression of the key, its share of the rows.
TABLES = {
    "dense": ("id BIGINT UNSIGNED NOT NULL PRIMARY KEY", "{n}", 0.35),
    "skewed": ("id BIGINT UNSIGNED NOT NULL PRIMARY KEY", "IF({n} % 10, {n}, {n} * 1000000007)", 0.2),
    "composite": ("p INT NOT NULL, q BIGINT NOT NULL, PRIMARY KEY (p, q)", "{n} % 50, {n}", 0.2),
    "named": ("id VARCHAR(40) NOT NULL PRIMARY KEY", "CONCAT(LEFT(SHA2({n}, 256), 20), {n})", 0.15),
    "keyless": ("id BIGINT NOT NULL", "{n}", 0.1),
}
LARGE = 16 << 20
LARGE_ROWS = 8
SETTINGS = {"innodb_buffer_pool_size": "1G", "max_allowed_packet": "64M", "innodb_redo_log_capacity": "1G"}
CHUNK = 1 << 20
LAST = 5 + 4  # bytes of the packet that ends the rows


def fill(connect: Connect, rows: int) -> int:
    """Creates and fills the tables; returns their rows."""
    done = LARGE_ROWS
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {workload.SCHEMA}")
        for kind in workload.KINDS:
            cursor.execute(f"DROP TABLE {kind}")
        for name, (key, expression, share) in TABLES.items():
            cursor.execute(f"CREATE TABLE {name} ({key}{COLUMNS})")
            wanted = int(rows * share)
            for first in range(0, wanted, 100_000):
                number = f"({first} + n)"
                columns = f"{expression.format(n=number)}, {workload.values(number)}"
                cursor.execute(
                    f"INSERT INTO {name} SELECT {columns} FROM aid.numbers WHERE n < {min(100_000, wanted - first)}"
                )
                connection.commit()
            done += wanted
        cursor.execute("CREATE TABLE large (id INT NOT NULL PRIMARY KEY, v LONGBLOB)")
        for n in range(LARGE_ROWS):
            cursor.execute(f"INSERT INTO large VALUES ({n}, REPEAT(UNHEX('{n:02x}ff'), {LARGE // 2}))")
            connection.commit()
        cursor.execute(f"ANALYZE TABLE {', '.join([*TABLES, 'large'])}")
        cursor.fetchall()
    return done


def discard(connection: Any, sql: str) -> int:
    """Executes a SELECT, reads its rows from the socket and throws them away; returns their bytes."""
    connection.query(sql, unbuffered=True)
    result, stream = connection._result, connection._rfile
    result.unbuffered_active, result.connection = False, None
    read, tail = 0, b""
    while True:
        data = stream.read1(CHUNK)
        if not data:
            raise OSError("the connection was closed inside of the rows")
        read += len(data)
        tail = (tail + data[-LAST:])[-LAST:]
        # A row that ends so is improbable; another packet would then follow at once.
        if tail[:3] == b"\x05\0\0" and tail[4] == 0xFE:
            return read


def selects(connect: Connect, connections: int) -> float:
    """Seconds in which so many connections read all tables, each one after the other."""
    left = [f"SELECT * FROM {workload.SCHEMA}.{name}" for name in ("large", *reversed(TABLES))]
    errors: list[BaseException] = []

    def read() -> None:
        try:
            with connect() as connection:
                while left:
                    discard(connection, left.pop())
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(connections)]
    began = CLOCK.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return CLOCK.monotonic() - began


def selected(place: Site, connections: int, rows: int) -> Row:
    """Measures plain SELECTs."""
    meter = place.servers()["mysqld"]
    before: Usage = meter.read()
    seconds = selects(place.connect, connections)
    used = meter.read() - before
    figures = {"rows": rows, "rows/s": round(rows / seconds), "CPU s/M mysqld": round(used.cpu_seconds / rows * 1e6, 2)}
    return Row(f"plain SELECTs, connections {connections}", figures)


def loaded(place: Site, service: Service, connections: int, rows: int) -> Row:
    """Measures an initial load to Kafka."""
    worker, gauges = service.worker("produce", source={"snapshot": {"connections": connections}})
    course = drain(place.servers(), worker, gauges, counter=PUBLISHED, goal=rows, parts=PRODUCER)
    figures = {name: value for name, value in course.figures().items() if "postgres" not in name}
    found = count(service.config)
    void = "" if found.dense and found.rows == rows else f"the log has {found.rows} rows"
    return Row(f"initial load to Kafka, connections {connections}", figures, void)


@click.command()
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of all tables.")
@click.option("--connections", "connections", multiple=True, type=int, default=(1, 2), show_default=True)
@click.option("--repeats", default=1, show_default=True)
@out_option
def main(*, rows: int, connections: Sequence[int], repeats: int, out: Path) -> None:
    """Measure the initial load; exit 1 if a figure is void."""
    sheet = Sheet(out, "load", {"rows": rows})
    with site(SETTINGS) as place:
        whole = fill(place.connect, rows)
        selects(place.connect, 1)  # all tables are in memory from here on
        for repeat in range(repeats):
            for number in connections:
                sheet.add(selected(place, number, whole))
                service = place.service(f"load{repeat}x{number}", source={"start": "snapshot"})
                sheet.add(loaded(place, service, number, whole))
    sys.exit(0 if sheet.valid else 1)


if __name__ == "__main__":
    main()
