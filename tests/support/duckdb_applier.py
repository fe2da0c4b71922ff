"""Applies the history of `mysql_applier` to a DuckDB target, from the target's position on: a program that tests kill.

python -m tests.support.duckdb_applier FILE [claim | forever]

With `claim` it claims the target and ends. With `forever` its events give each of two tables `ROWS` rows, until it is
killed.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from connector.clock import SystemClock
from connector.log.compact.net_changes import Ddl
from connector.log.ids import LogId, Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.position import TargetPosition
from connector.targets.duckdb.target import DuckDbTarget
from tests.support.mysql_applier import apply
from tests.support.net import layout, net

ROWS = 4000
ONE, TWO = (layout(f"shop.{name}", ["id int", "v varchar(20)"], ["id"]) for name in ("one", "two"))


def apply_forever(target: DuckDbTarget) -> None:
    """Event 0 makes the tables; event n gives each the keys from n * ROWS on, and changes those of the event before."""
    for seqno in count(target.claim("shop").seqno + 1):
        if seqno == 0:
            create = [f"CREATE TABLE shop.{name} (id INT PRIMARY KEY, v VARCHAR(20))" for name in ("one", "two")]
            statements = [Statement("shop", sql, {}) for sql in ("CREATE DATABASE shop", *create)]
            target.ddl(Ddl(seqno=Seqno(0), statements=statements, commit_time=1))
        for table in (ONE, TWO) if seqno else ():
            new = [(key, str(seqno)) for key in range(seqno * ROWS, (seqno + 1) * ROWS)]
            changed = [(key - ROWS, str(seqno)) for key, _ in new] if seqno > 1 else []
            target.stage([net(table, inserts=new, updates=changed)], last=table is TWO)
        target.commit(TargetPosition(service="shop", log_id=LogId("log"), seqno=Seqno(seqno)), [])
        print(seqno, flush=True)


def main(file: str, *words: str) -> None:
    """Run the program with these arguments."""
    made = DuckDbTarget(Path(file), SystemClock(), audit=True)
    match words:
        case ["claim"]:
            made.claim("shop")
        case ["forever"]:
            apply_forever(made)
        case _:
            apply(made)
    made.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
