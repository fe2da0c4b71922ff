"""Events made by hypothesis: as an abstract list of changes, and as pieces cut at random."""

from __future__ import annotations

import io
from array import array
from dataclasses import dataclass
from typing import Any

import fastavro
from hypothesis import strategies as st

from connector.log.ids import Action, Kind, Outcome
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.position import SourcePosition
from connector.schema import fragment_schema

SCHEMA: Any = fastavro.parse_schema(fragment_schema())
ROW: Any = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Row",
        "fields": [
            {
                "name": side,
                "type": ["null", {"type": "array", "items": ["null", "long", "double", "string", "bytes"]}],
            }
            for side in ("before", "after")
        ],
    }
)

values = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    st.binary(max_size=40),
)
names = st.text("abcdef", min_size=1, max_size=4)
columns = st.builds(
    Column,
    name=names,
    type=st.sampled_from(["bigint", "varchar(10)", "enum", "decimal(65,30)"]),
    unsigned=st.booleans(),
    charset=st.sampled_from(["", "utf8mb4"]),
    labels=st.lists(names, max_size=3).map(tuple),
    nullable=st.booleans(),
)


@st.composite
def layouts(draw: st.DrawFn, schemas: st.SearchStrategy[str] = names) -> TableLayout:
    width = tuple(draw(st.lists(columns, min_size=1, max_size=4)))
    key = tuple(draw(st.lists(st.integers(0, len(width) - 1), max_size=2, unique=True)))
    return TableLayout(TableName(draw(schemas), draw(names)), width, key)


@dataclass(frozen=True)
class Change:
    """Rows of one table, as values."""

    layout: TableLayout
    action: Action
    rows: list[dict[str, Any]]
    before: bytes = b""
    after: bytes = b""
    query: str | None = None


@st.composite
def changes(draw: st.DrawFn) -> Change:
    layout = draw(layouts())
    action = draw(st.sampled_from(Action))
    width = len(layout.columns)
    presence = st.one_of(st.just(b""), st.integers(0, 2**width - 1).map(lambda bits: bits.to_bytes(1)))
    before, after = draw(presence), draw(presence)
    row = st.fixed_dictionaries(
        {
            "before": st.none() if action is Action.INSERT else _image(before, width),
            "after": st.none() if action is Action.DELETE else _image(after, width),
        }
    )
    query = draw(st.one_of(st.none(), st.text(max_size=20)))
    return Change(layout, action, draw(st.lists(row, min_size=1, max_size=8)), before, after, query)


def _image(present: bytes, width: int) -> st.SearchStrategy[list[Any]]:
    size = present[0].bit_count() if present else width
    return st.lists(values, min_size=size, max_size=size)


statements = st.builds(
    Statement, schema=names, sql=st.text(max_size=80), options=st.dictionaries(names, names, max_size=2)
)
events = st.lists(st.one_of(changes(), changes(), statements), max_size=6)

BEGIN = TransactionStart(
    server_id=7,
    thread_id=1748,
    gtid="3e11fa47-71ca-11e1-9e33-c80aa9429562:23",
    last_committed=4,
    sequence_number=5,
    start=SourcePosition("mysql-bin.000002", 1900),
    kind=Kind.TRANSACTION,
)
ENDING = TransactionEnd(
    end=SourcePosition("mysql-bin.000002", 2081), commit_time=1_700_000_000_000_000, outcome=Outcome.COMMIT
)


def encoded_rows(change: Change) -> list[Rows]:
    """Each row of a change as a `Rows` of its own."""
    result = []
    for row in change.rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, ROW, row, disable_tuple_notation=True)
        data = out.getvalue()
        ends = array("Q", [len(data)])
        result.append(Rows(change.layout, change.action, data, ends, change.before, change.after, change.query))
    return result


def joined(parts: list[Rows]) -> Rows:
    """Rows of one layout, action and presence as one."""
    data = bytearray()
    ends = array("Q")
    for part in parts:
        data += part.data
        ends.append(len(data))
    return Rows(parts[0].layout, parts[0].action, data, ends, parts[0].before, parts[0].after, parts[0].query)


@st.composite
def pieces(draw: st.DrawFn, event: list[Change | Statement]) -> list[TransactionBatch]:
    """The event in pieces, its row changes split anywhere."""
    flat: list[Rows | Statement] = []
    for change in event:
        if isinstance(change, Statement):
            flat.append(change)
            continue
        rest = encoded_rows(change)
        while rest:
            count = draw(st.integers(1, len(rest)))
            flat.append(joined(rest[:count]))
            rest = rest[count:]
    result = [TransactionBatch(BEGIN, [], None)]
    for item in flat:
        if result[-1].changes and draw(st.booleans()):
            result.append(TransactionBatch(None, [], None))
        result[-1].changes.append(item)
    if result[-1].changes and draw(st.booleans()):
        result.append(TransactionBatch(None, [], None))
    result[-1].ending = ENDING
    return result


def whole(event: list[Change | Statement]) -> list[TransactionBatch]:
    """The event as one piece."""
    flat: list[Rows | Statement] = [
        change if isinstance(change, Statement) else joined(encoded_rows(change)) for change in event
    ]
    return [TransactionBatch(BEGIN, flat, ENDING)]


def decoded(value: bytes) -> dict[str, Any]:
    """A message by fastavro, all of it."""
    stream = io.BytesIO(value[10:])
    record = fastavro.schemaless_reader(stream, SCHEMA, None)
    assert not stream.read()
    assert isinstance(record, dict)
    return record
