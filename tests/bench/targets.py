"""`python -m tests.bench.targets sqlite|postgresql|mysql|mariadb [rows a batch …]`: write rates of targets.

Ten columns, about 220 bytes a row, a key. Bulk: inserts only. Mixed: half inserts, 40 % updates, 10 % deletes.
Encoding the images is not in the figures.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

from pydantic import SecretStr

from connector.clock import SystemClock
from connector.log.compact.net_changes import Ddl, NetChanges
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.position import TargetPosition
from connector.sandbox.mariadb import MariaDbServer
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.postgres import PostgresServer
from connector.sandbox.settings import MYSQL_FAST
from connector.targets.mysql.target import MySqlTarget
from connector.targets.postgres.target import PostgresTarget
from connector.targets.sqlite.target import SqliteTarget
from connector.targets.target import TargetDatabase
from tests.support.net import Row, layout, net

TABLE = layout(
    "bench.items",
    [
        "id bigint",
        "a int",
        "b int unsigned",
        "name varchar(60)",
        "city varchar(60)",
        "price decimal(12,2)",
        "at datetime(3)",
        "note varchar(120)",
        "flag tinyint",
        "d double",
    ],
    ["id"],
)
CREATE = (
    "CREATE TABLE items (id BIGINT PRIMARY KEY, a INT, b INT UNSIGNED, name VARCHAR(60), city VARCHAR(60), "
    "price DECIMAL(12,2), at DATETIME(3), note VARCHAR(120), flag TINYINT, d DOUBLE)"
)
TOTAL = 300_000


def row(key: int) -> Row:
    return (
        key,
        key * 7 % 1_000_003,
        key,
        f"name of item {key:>20}",
        "Wuppertal-Elberfeld",
        f"{key % 100_000}.{key % 100:02}",
        "2024-02-29 23:59:59.123",
        "x" * 90,
        key % 2,
        key / 3,
    )


def bulk(batch: int) -> Iterator[NetChanges]:
    for first in range(0, TOTAL, batch):
        yield net(TABLE, inserts=[row(key) for key in range(first, first + batch)])


def mixed(batch: int) -> Iterator[NetChanges]:
    chance = random.Random(1)
    keys = list(range(TOTAL))
    for first in range(0, TOTAL, batch):
        chance.shuffle(keys)
        gone, changed = keys[: batch // 10], keys[batch // 10 : batch // 2]
        new = range(TOTAL + first, TOTAL + first + batch // 2)
        keys = [*keys[batch // 10 :], *new]
        yield net(TABLE, inserts=map(row, new), updates=map(row, changed), deletes=map(row, gone))


def run(name: str, target: TargetDatabase, batches: list[NetChanges], batch: int) -> None:
    position = target.claim("bench")
    seqno = position.seqno
    times = []
    for each in batches:
        begin = time.perf_counter()
        target.stage([each], last=True)
        seqno += 1
        target.commit(at(seqno), [])
        times.append(time.perf_counter() - begin)
    times.sort()
    rate = batch * len(batches) / sum(times)
    print(f"{name:28} {batch:>7} a batch {rate:>10,.0f} rows/s  median commit {times[len(times) // 2] * 1000:8.1f} ms")


def at(seqno: int) -> TargetPosition:
    return TargetPosition(service="bench", log_id=LogId("bench"), seqno=Seqno(seqno), epoch=Epoch(1))


def start(make: Callable[[], TargetDatabase]) -> TargetDatabase:
    target = make()
    target.claim("bench")
    target.begin_snapshot()
    target.ddl(Ddl(seqno=Seqno(0), statements=[Statement("bench", CREATE)], commit_time=0))
    target.commit(at(NO_SEQNO + 1), [])
    return target


def main() -> None:
    kind = sys.argv[1]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if kind == "sqlite":
            make: Callable[[], TargetDatabase] = lambda: SqliteTarget(folder / "bench.db", SystemClock())  # noqa: E731
        elif kind in ("mysql", "mariadb"):
            of_kind = MySqlServer if kind == "mysql" else MariaDbServer
            database = stack.enter_context(of_kind(folder, settings=MYSQL_FAST, die_with_parent=True))
            address = f"mysql://{database.user}:{quote(database.password)}@{database.host}:{database.port}"
            make = lambda: MySqlTarget(SecretStr(address), SystemClock())  # noqa: E731
        else:
            server = stack.enter_context(PostgresServer(folder, die_with_parent=True))
            url = f"postgresql://{server.user}:{server.password}@{server.host}:{server.port}/postgres"
            make = lambda: PostgresTarget(SecretStr(url), SystemClock())  # noqa: E731
        for batch in [int(text) for text in sys.argv[2:]] or [100_000, 10_000, 1_000, 10]:
            target = start(make)
            seed = list(bulk(min(100_000, TOTAL)))
            if batch >= 1000:
                run(f"{kind} bulk", target, list(bulk(batch)), batch)
            else:
                run(f"{kind} bulk (seed)", target, seed, 100_000)
                few = [net(TABLE, updates=[row(k * batch + n) for n in range(batch)]) for k in range(200)]
                run(f"{kind} updates", target, few, batch)
                target.close()
                continue
            run(f"{kind} 50/40/10", target, list(mixed(batch))[: 20 if batch < 10_000 else None], batch)
            target.close()


if __name__ == "__main__":
    main()
