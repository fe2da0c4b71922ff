"""`python -m tests.bench.row_images`: bytes of a MySQL's binary log per updated row, by binlog_row_image.

Rows of ten columns are updated in transactions of ten, once without and once with a TEXT of 1,000 bytes beside them.
The same rows get the same updates with each image.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any, Final

import click

from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from tests.support.mysql import connect

IMAGES: Final = ("FULL", "NOBLOB", "MINIMAL")
EVENT: Final = 10  # rows of a transaction
TEXTS: Final = 9  # columns of 20 characters beside the key
NOTE: Final = 1000  # bytes


@click.command()
@click.option("--rows", default=10_000, show_default=True, help="Rows of each table.")
@click.option("--changes", default=20_000, show_default=True, help="Rows that are updated with each image.")
def main(rows: int, changes: int) -> None:
    """Measure."""
    with (
        tempfile.TemporaryDirectory() as folder,
        MySqlServer(Path(folder), settings=MYSQL_FAST, die_with_parent=True) as server,
        connect(server) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("CREATE DATABASE shop")
        cursor.execute("USE shop")
        for table, note in (("plain", ""), ("noted", f", note TEXT DEFAULT (REPEAT('n', {NOTE}))")):
            create(cursor, table, note, rows)
            for image in IMAGES:
                print(f"{table:6} {image:8} {written(cursor, table, image, rows, changes):8.1f} B/row", flush=True)


def create(cursor: Any, table: str, note: str, rows: int) -> None:
    """Create a table and fill it."""
    columns = "".join(f", c{n} VARCHAR(40) DEFAULT 'abcdefghij klmnopqrs'" for n in range(TEXTS))
    cursor.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY{columns}{note})")
    cursor.execute(f"SET cte_max_recursion_depth = {rows}")
    numbers = f"WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {rows - 1})"
    cursor.execute(f"INSERT INTO {table} (id) {numbers} SELECT i FROM n")


def written(cursor: Any, table: str, image: str, rows: int, changes: int) -> float:
    """The bytes of the binary log per row, of updates of one column by key."""
    draw = random.Random(3)
    cursor.execute(f"SET SESSION binlog_row_image = {image}")
    cursor.execute("FLUSH BINARY LOGS")
    before = end(cursor)
    for turn in range(changes // EVENT):
        cursor.execute("BEGIN")
        for key in draw.sample(range(rows), EVENT):
            cursor.execute(f"UPDATE {table} SET c0 = 'turn {image[0]} {turn % 1000:06} of it' WHERE id = {key}")
        cursor.execute("COMMIT")
    after = end(cursor)
    if after[0] != before[0]:
        raise click.ClickException("the binary log has begun another file: fewer --changes")
    return (after[1] - before[1]) / (changes // EVENT * EVENT)


def end(cursor: Any) -> tuple[str, int]:
    """The end of the binary log."""
    cursor.execute("SHOW BINARY LOG STATUS")
    file, position, *_ = cursor.fetchone()
    return str(file), int(position)


if __name__ == "__main__":
    main()
