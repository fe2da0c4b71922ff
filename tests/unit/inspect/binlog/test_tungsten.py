"""Tungsten's layout, as in `thl list`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.inspect.formats.tungsten import lines, present
from connector.inspect.formats.tungsten_transaction import BatchHeader, TungstenPrinter
from connector.log.ids import Action, Seqno
from connector.log.transaction.batch import Statement, TransactionBatch, TransactionEnd
from connector.log.transaction.layout import Column, TableLayout, TableName
from tests.support.batches import BEGIN, ENDING, LAYOUT, inserts, rows
from tests.support.binlog_command import binlog, transactions
from tests.support.binlog_writer import LogWriter

HEAD = """\
SEQ# = 3 / FRAG# = {} (last frag)
- FILE = f.000001
- TIME = 1970-01-01 00:00:01.000001
- EPOCH# = 0
- EVENTID = f.000001:0000000000000900;7
- SOURCEID = 1
- METADATA = [mysql_server_id=1;mysql_thread_id=7;dbms_type=mysql;tz_aware=true]
- TYPE = com.continuent.tungsten.replicator.event.ReplDBMSEvent
"""


def printed(*pieces: tuple[list[Any], TransactionEnd | None]) -> str:
    printer = TungstenPrinter()
    printer.begin(BEGIN)
    body = b"".join(printer.batch(Seqno(3), TransactionBatch(None, changes, ending)) for changes, ending in pieces)
    return (printer.header(Seqno(3), ENDING) + body + printer.footer()).decode()


def test_a_transaction_is_printed_in_tungstens_layout() -> None:
    update = rows(LAYOUT, Action.UPDATE, ([1, "old"], [2, None]))
    statement = Statement("s", "drop table t", {"autocommit": "1"})
    assert printed(([update, statement], ENDING)) == HEAD.format(0) + (
        "- SQL(0) =\n"
        " - ACTION = UPDATE\n"
        " - SCHEMA = s\n"
        " - TABLE = t\n"
        " - ROW# = 0\n"
        "  - COL(1: a) = 2\n"
        "  - COL(2: b) = NULL\n"
        "  - KEY(1: a) = 1\n"
        "- OPTIONS = [autocommit = 1]\n"
        "- SCHEMA = s\n"
        "- SQL(1) = drop table t\n"
    )


def test_a_batch_is_a_fragment_and_only_the_last_has_the_end() -> None:
    told = printed(([inserts(1)], None), ([inserts(2)], ENDING))
    first, last = told.split(HEAD.format(1))
    assert first.startswith("SEQ# = 3 / FRAG# = 0\n- FILE = f.000001\n- TIME = null\n- EPOCH# = 0\n- EVENTID = null\n")
    assert first.count("ROW#") == last.count("ROW#") == 1


VALUES = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(st.characters(codec="utf-8")), st.binary()
)


@given(st.data(), st.sampled_from(Action), st.integers(1, 4))
def test_rows_are_printed_as_by_thl_list(data: st.DataObject, action: Action, width: int) -> None:
    """The same rows through what lists the log on Kafka; some images do not have all columns."""
    old, new = (
        data.draw(st.one_of(st.just(b""), st.integers(0, 2**width - 1).map(lambda n: n.to_bytes(1)))) for _ in range(2)
    )
    before, after = (
        st.lists(VALUES, min_size=size, max_size=size) for size in (len(present(old, width)), len(present(new, width)))
    )
    none = st.none()
    images = data.draw(
        st.lists(
            st.tuples(none if action is Action.INSERT else before, none if action is Action.DELETE else after),
            max_size=3,
        )
    )
    key = tuple(sorted(data.draw(st.sets(st.integers(0, width - 1)))))
    layout = TableLayout(TableName("s", "t"), tuple(Column(f"c{n}", "any") for n in range(width)), key)

    told = printed(([rows(layout, action, *images, before=old, after=new)], ENDING))

    fragment = {
        "seqno": 3,
        "fragno": 0,
        "last_frag": True,
        "commit_time": ENDING.commit_time,
        "epoch": 0,
        "event_id": "f.000001:0000000000000900;7",
        "source_id": 1,
        "thread_id": 7,
        "metadata": {"mysql_server_id": 1, "dbms_type": "mysql", "tz_aware": "true"},
        "changes": [
            {
                "schema": "s",
                "table": "t",
                "action": action.name,
                "columns": [{"name": column.name} for column in layout.columns],
                "key_columns": list(key),
                "before_present": old,
                "after_present": new,
                "rows": [{"before": one, "after": other} for one, other in images],
            }
        ],
    }
    assert told == "\n".join(lines(BatchHeader("f.000001", fragment))) + "\n"


@pytest.mark.parametrize("layout", ["json", "tungsten"])
def test_standard_output_has_nothing_else(layout: str) -> None:
    log = LogWriter()
    transactions(log, 1, 2)
    told = binlog("-", "--format", layout, stdin=log.data)
    assert told.err == ""
    assert told.out.count(b"\n") == (2 if layout == "json" else 2 * 14)
