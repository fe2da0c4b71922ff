"""The statements that write the bookkeeping, run in SQLite, whose dialect has a literal for every value."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import pytest

from connector.log.compact.net_changes import AppliedEvent, LeftOut
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import TargetPosition
from connector.targets.commit_statements import CommitStatement, CommitStatements
from connector.targets.operations import Value
from connector.targets.sqlite.bookkeeping import DIALECT, STATEMENTS

POSITION = TargetPosition(service="it's", log_id=LogId("l"), seqno=Seqno(7), epoch=Epoch(2), offsets={0: 9})


@pytest.fixture
def db() -> sqlite3.Connection:
    made = sqlite3.connect(":memory:", isolation_level=None)
    for statement in STATEMENTS:
        made.execute(statement)
    made.execute("INSERT INTO thl_position (service, token) VALUES (?, 5)", (POSITION.service,))
    return made


def statements(token: int = 5) -> CommitStatements:
    return CommitStatements(DIALECT, POSITION.service, token, 1_700_000_000_000_000)


def run(db: sqlite3.Connection, *found: CommitStatement) -> None:
    for statement in found:
        count = db.execute(statement.sql).rowcount
        assert statement.expected in (None, count)


@pytest.mark.parametrize(
    "value", [None, True, False, 0, -5, 1 << 62, 1.5, "", "it's", 'a "b" \\ ü', "a\0b", b"", b"\0'\xff"]
)
def test_sqlites_literal_of_a_value_is_the_value(value: Value) -> None:
    (found,) = sqlite3.connect(":memory:").execute(f"SELECT {DIALECT.literal(value)}").fetchone()
    assert found == value
    assert isinstance(found, type(value)) or isinstance(value, bool)


def test_position_is_found_under_its_token_alone(db: sqlite3.Connection) -> None:
    assert db.execute(statements(token=4).position(POSITION).sql).rowcount == 0
    run(db, statements().position(POSITION))
    assert db.execute("SELECT seqno, epoch, offsets FROM thl_position").fetchone() == (7, 2, '{"0": 9}')


def test_rewind_is_recorded_with_its_head_and_forgets_later_events(db: sqlite3.Connection) -> None:
    events = [
        AppliedEvent(seqno=Seqno(n), epoch=Epoch(1), event_id=f"e{n}", commit_time=n, rows=n) for n in range(1200)
    ]
    run(db, *statements().audit(events))
    before = replace(POSITION, seqno=Seqno(1199))
    run(db, *statements().rewind(before, replace(POSITION, rewound_from=Seqno(1199))))
    assert db.execute("SELECT max(seqno), count(*) FROM thl_applied").fetchone() == (7, 8)
    assert db.execute("SELECT head FROM thl_rewound").fetchall() == [(1199,)]
    run(db, *statements().rewind(replace(POSITION, rewound_from=Seqno(1199)), before))
    assert db.execute("SELECT head FROM thl_rewound").fetchall() == []


def test_event_left_out_again_keeps_the_older_mark_of_a_table(db: sqlite3.Connection) -> None:
    event = LeftOut(
        seqno=Seqno(3),
        epoch=Epoch(1),
        event_id="e",
        by="me",
        reason="it's old",
        tables=(TableName("s", "a"),),
    )
    later = replace(event, seqno=Seqno(4), tables=(TableName("s", "a"), TableName("s", "b")))
    run(db, *statements().left_out([event, event, later]))
    marked = db.execute("SELECT table_name, since_seqno FROM thl_inconsistent ORDER BY 1").fetchall()
    assert marked == [("a", 3), ("b", 4)]
    assert db.execute("SELECT seqno, because FROM thl_skipped").fetchall() == [(3, "it's old"), (4, "it's old")]
