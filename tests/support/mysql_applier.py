"""Applies a history with much DDL to a MySQL target, from the target's position on: a program that tests kill.

python -m tests.support.mysql_applier URL DEFINITIONS
"""

from __future__ import annotations

import sys
from typing import Literal, cast

from pydantic import SecretStr

from connector.clock import SystemClock
from connector.log.compact.net_changes import AppliedEvent, Ddl, NetChanges
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.position import TargetPosition
from connector.targets.mysql.target import MySqlTarget
from connector.targets.target import TargetDatabase
from tests.support.net import layout, net

TWO = ["id int", "v varchar(20)"]
OLD, NEW = layout("shop.old", TWO, ["id"]), layout("shop.new", TWO, ["id"])
WIDER = layout("shop.old", [*TWO, "n int not null"], ["id"])
COPY = layout("shop.copy", ["id int"])
CREATE = "CREATE TABLE {} (id INT PRIMARY KEY, v VARCHAR(20), KEY (v))"

Event = str | list[str] | NetChanges | tuple[str, NetChanges]

HISTORY: tuple[Event, ...] = (
    ["CREATE DATABASE shop", CREATE.format("old"), CREATE.format("new")],
    net(OLD, inserts=[(n, "old") for n in range(50)]),
    net(NEW, inserts=[(n, "new") for n in range(20)]),
    "RENAME TABLE old TO tmp, new TO old, tmp TO new",  # a ring of tables with equal definitions
    net(OLD, inserts=[(100, "x")]),
    "TRUNCATE TABLE new",
    net(NEW, inserts=[(n, "again") for n in range(7)]),
    "ALTER TABLE old ADD n INT NOT NULL DEFAULT 3",
    net(WIDER, updates=[(100, "y", 4)]),
    ("CREATE TABLE copy (id INT) START TRANSACTION", net(COPY, inserts=[(1,), (1,), (2,)])),
    "DROP TABLE new",
    CREATE.format("new"),
    net(NEW, inserts=[(1, "last")]),
    "ALTER TABLE new RENAME TO other",
    "RENAME TABLE other TO new, old TO other",
    "CREATE INDEX by_v ON copy (id)",
)


def apply(target: TargetDatabase) -> None:
    """Apply what the target lacks."""
    position = target.claim("shop")
    for seqno in range(position.seqno + 1, len(HISTORY)):
        event = HISTORY[seqno]
        changes = event if isinstance(event, NetChanges) else event[1] if isinstance(event, tuple) else None
        sql = event if isinstance(event, list) else [event] if isinstance(event, str) else None
        sql = [event[0]] if isinstance(event, tuple) else sql
        if sql is not None:
            statements = [Statement("shop", one, {}) for one in sql]
            target.ddl(Ddl(seqno=Seqno(seqno), statements=statements, commit_time=1_700_000_000_000_000))
        if changes is not None:
            target.stage([changes], last=True)
        at = TargetPosition(
            service="shop", log_id=LogId("log"), seqno=Seqno(seqno), epoch=Epoch(1), offsets={0: seqno + 1}
        )
        applied = AppliedEvent(seqno=Seqno(seqno), epoch=Epoch(1), event_id=f"f:{seqno};1", commit_time=1, rows=1)
        target.commit(at, [applied])


def main(url: str, definitions: str) -> None:
    """Run the program with these arguments."""
    apply(
        MySqlTarget(
            SecretStr(url), SystemClock(), audit=True, definitions=cast(Literal["source", "plain"], definitions)
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
