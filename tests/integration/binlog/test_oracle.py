"""The rows decoded from a log equal those of mysql-replication, which shares no code with the decoder."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from connector.log.transaction.position import AfterGtids
from tests.support.binlog import read_from, row_changes
from tests.support.servers.environment import SqlServer

SCHEMA = "capture_oracle"
ROUNDS = 300


def shown(value: Any) -> Any:
    """A value of the library as ours is written."""
    match value:
        case Decimal():
            return str(value)
        case datetime():
            return value.isoformat(" ", "microseconds")
        case date():
            return value.isoformat()
        case int() if value >= 2**63:
            return str(value)
        case set():
            return ",".join(sorted(value))
        case bytes() | int() | float() | str() | None:
            return value
    raise AssertionError(value)


def test_rows_equal_those_of_the_reference_library(mysql_server: SqlServer) -> None:
    settings = {
        "host": mysql_server.host,
        "port": mysql_server.port,
        "user": mysql_server.user,
        "password": mysql_server.password,
    }
    connection = pymysql.connect(**settings, autocommit=True, charset="utf8mb4")  # type: ignore[arg-type]
    draw = random.Random(5)
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {SCHEMA}")
        cursor.execute(f"CREATE DATABASE {SCHEMA}")
        cursor.execute(f"USE {SCHEMA}")
        cursor.execute(
            "CREATE TABLE o (id int PRIMARY KEY, i bigint, u bigint unsigned, d decimal(30,10), f double, "
            "v varchar(400), x varbinary(300), n mediumtext, at datetime(6), day date, e enum('a','b'), s set('p','q'))"
        )
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("SELECT @@GLOBAL.gtid_executed")
        (start,) = cursor.fetchone() or ("",)
        cursor.execute("SHOW BINARY LOGS")
        log_file = cursor.fetchall()[-1][0]
        for key in range(ROUNDS):
            row = (
                key,
                draw.randrange(-(2**63), 2**63),
                draw.randrange(2**64),
                Decimal(draw.randrange(-(10**30), 10**30)).scaleb(-10),
                draw.uniform(-1e9, 1e9),
                draw.choice([None, "", "\u00e9" * draw.randrange(400)]),
                draw.randbytes(draw.randrange(1, 300)),  # the library gives an empty one as text
                "n" * draw.randrange(500),
                f"20{draw.randrange(10, 99)}-01-02 03:04:05.{draw.randrange(10**6):06d}",
                f"19{draw.randrange(10, 99)}-12-31",
                draw.choice(["a", "b", None]),
                draw.choice(["p", "q", "p,q"]),
            )
            cursor.execute(f"INSERT INTO o VALUES ({','.join(['%s'] * len(row))})", row)
            cursor.execute("UPDATE o SET i = MOD(u, 1000), v = CONCAT(v, id) WHERE id = %s", (draw.randrange(ROUNDS),))
            cursor.execute("DELETE FROM o WHERE id = %s", (draw.randrange(2 * ROUNDS),))
    connection.close()
    theirs: list[tuple[str, Any, Any]] = []
    library = BinLogStreamReader(
        connection_settings=settings, server_id=7499, log_file=log_file, log_pos=4, resume_stream=True,
        only_schemas=[SCHEMA], only_events=[WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent],
    )  # fmt: skip
    for event in library:
        for row in event.rows:
            before = row.get("before_values") or (row["values"] if isinstance(event, DeleteRowsEvent) else None)
            after = row.get("after_values") or (row["values"] if isinstance(event, WriteRowsEvent) else None)
            action = {WriteRowsEvent: "INSERT", UpdateRowsEvent: "UPDATE", DeleteRowsEvent: "DELETE"}[type(event)]
            images = [[shown(value) for value in image.values()] if image else None for image in (before, after)]
            theirs.append((action, *images))
    library.close()

    assert len(theirs) > ROUNDS
    found = read_from(mysql_server, AfterGtids(start), lambda found: len(row_changes(found, "o")) >= len(theirs))
    assert row_changes(found, "o") == theirs
