"""Loads of tables: events of their own, and the program of docs/consuming.md, which keeps a copy right through them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import connector.consume
from connector.consume import Action, Event, Kind, LoadEvent, LogDamaged, Part, RowChanges, TableName
from tests.support.events import MemoryLog, Story
from tests.support.fragments import change, load_record, record, statement
from tests.unit.consume.test_assembly import Reading, place

ORDERS, NOTES = TableName("shop", "orders"), TableName("shop", "notes")  # with a primary key, and without one
PROGRAM = (Path(__file__).parents[3] / "docs" / "consuming.md").read_text().split("```python\n")[3].partition("```")[0]
KEYS = range(4)
Row = tuple[int, str]


def events_of(*records: dict[str, Any]) -> list[Event]:
    story = Story(MemoryLog(), seqno=records[-1]["seqno"])
    story.log.online()
    story.log.events(records)
    return list(Reading(story, place()))


@dataclass
class Source:
    """A source, and the log of its changes and loads. A table is captured from its first load on.

    Args:
        partial: log of an update only the old key and the changed columns.
        rows: what each table holds now.
        read: of each table that is loading, the last key that was read: a load reads in their order.
        log: the records of all events.
        whole: after each event, what each table holds that is captured and is not loading.
    """

    partial: bool = False
    rows: dict[TableName, list[Row]] = field(default_factory=lambda: {ORDERS: [(1, "a"), (3, "b")], NOTES: [(1, "a")]})
    read: dict[TableName, int] = field(default_factory=dict)
    captured: set[TableName] = field(default_factory=set)
    log: list[dict[str, Any]] = field(default_factory=list)
    whole: list[dict[TableName, list[Row]]] = field(default_factory=list)
    barrier: int = -1

    def event(self, *changes: dict[str, Any], load: LoadEvent | None = None) -> None:
        fields: dict[str, Any] = {"last_barrier": self.barrier}
        if load is not None:
            fields |= {"kind": "load", "gtid": None, "metadata": load.metadata()}
            if load.edge:
                fields["shard"], self.barrier = "#UNKNOWN", len(self.log)
        self.log.append(record(len(self.log), changes, **fields))
        tables = self.captured - self.read.keys()
        self.whole.append({table: sorted(self.rows[table]) for table in tables})

    def changed(self, table: TableName, before: Row | None, after: Row | None, *, logged: bool = True) -> None:
        """The source changes a row."""
        if before is not None:
            self.rows[table].remove(before)
        if after is not None:
            self.rows[table].append(after)
        if table not in self.captured or not logged:
            return
        action = "insert" if before is None else "delete" if after is None else "update"
        if self.partial and action == "update" and table == ORDERS and before and after and before[0] == after[0]:
            images = [([before[0]], [after[1]])]
            self.event(changes_of(table, action, images, before_present=b"\1", after_present=b"\2"))
        else:
            self.event(changes_of(table, action, [(before, after)]))

    def begin(self, table: TableName) -> None:
        self.captured.add(table)
        self.read[table] = -1
        self.event(statement("CREATE TABLE t"), load=LoadEvent("l1", Part.BEGIN, table))

    def go_on(self, table: TableName) -> None:
        """The load's next event."""
        if table not in self.read:
            return
        after = self.read[table]
        if table == NOTES and after < 0:
            part, rows = Part.WHOLE, sorted(self.rows[table])
        else:
            part, rows = Part.ROWS, sorted(row for row in self.rows[table] if row[0] > after)[:2]
        if rows or part is Part.WHOLE:
            self.read[table] = KEYS.stop if part is Part.WHOLE else rows[-1][0]
            self.event(changes_of(table, "read", [(None, row) for row in rows]), load=LoadEvent("l1", part, table))
        else:
            del self.read[table]
            self.event(load=LoadEvent("l1", Part.END, table))


def changes_of(
    table: TableName, action: str, images: Sequence[tuple[Sequence[Any] | None, Sequence[Any] | None]], **more: Any
) -> dict[str, Any]:
    return change(action, images, schema=table.schema, table=table.table, key=(0,) if table == ORDERS else (), **more)


STEPS = st.tuples(
    st.sampled_from(("write", "move", "delete", "unlogged", "begin", "load", "load", "load")),
    st.sampled_from(KEYS),
    st.booleans(),
)


def told(source: Source, step: str, number: int, keyed: bool) -> None:
    """One step of the source."""
    table = ORDERS if keyed else NOTES
    before = next((row for row in source.rows[table] if row[0] == number), None)
    text = f"{len(source.log)}"
    match step:
        case "write":
            source.changed(table, before, (number, text))
        case "move" if before is not None and not source.partial:
            free = next((key for key in KEYS if all(row[0] != key for row in source.rows[table])), None)
            if free is not None:
                source.changed(table, before, (free, text))
        case "delete" if before is not None:
            source.changed(table, before, None)
        case "unlogged":  # the copy differs, and the table is loaded again
            source.changed(table, before, (number, text) if before is None else None, logged=False)
            source.begin(table)
        case "begin":
            source.begin(table)
        case "load":
            source.go_on(table)


def copies_of(*records: dict[str, Any]) -> list[dict[TableName, list[Row]]]:
    """Run the documented program; return what its copy has after each event."""
    found: list[dict[TableName, list[Row]]] = []
    program: dict[str, Any] = {}

    class Given:
        """A consumer of these events."""

        def __init__(self, *_: Any, **__: Any) -> None: ...

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def __iter__(self) -> Iterator[Event]:
            for event in events_of(*records):
                yield event
                tables = {table: rows.values() if isinstance(rows, dict) else rows for table, rows in copy().items()}
                found.append({table: sorted((row["id"], row["v"]) for row in rows) for table, rows in tables.items()})

    def copy() -> dict[TableName, Any]:
        copied: dict[TableName, Any] = program["copy"]
        return copied

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(connector.consume, "Consumer", Given)
        exec(compile(PROGRAM, "consuming.md", "exec"), program)  # noqa: S102 (the documented text itself)
    return found


@given(steps=st.lists(STEPS, max_size=60), partial=st.booleans())
@example(steps=[("load", 0, True)] * 2 + [("unlogged", 1, True)], partial=False)  # only the copy has a row
@example(steps=[("load", 0, True), ("unlogged", 1, True)], partial=False)  # … that a load has read which begins again
@example(steps=[("write", 1, False)], partial=False)  # without a key, before `whole`
def test_documented_copy_equals_the_source_wherever_no_load_is_open(
    steps: list[tuple[str, int, bool]], partial: bool
) -> None:
    source = Source(partial)
    for table in (ORDERS, NOTES):
        source.begin(table)
    for step in steps:
        told(source, *step)
    for table in (ORDERS, NOTES):
        while table in source.read:
            source.go_on(table)
    copies = copies_of(*source.log)
    assert len(copies) == len(source.log)
    for seqno, expected in enumerate(source.whole):
        assert {table: copies[seqno].get(table) for table in expected} == expected, f"after event {seqno}"
    assert copies[-1] == {table: sorted(rows) for table, rows in source.rows.items()}


def test_documented_copy_stops_where_a_key_changes_that_it_cannot_complete() -> None:
    moved = changes_of(ORDERS, "update", [([1], [2])], before_present=b"\1", after_present=b"\1")
    begin = load_record(0, [statement("CREATE TABLE t")], part=Part.BEGIN, shard="#UNKNOWN")
    with pytest.raises(RuntimeError, match="binlog_row_image=FULL"):
        copies_of(begin, record(1, [moved], last_barrier=0))


def test_documented_copy_takes_rows_and_absences_of_a_repair() -> None:
    """`thl verify --repair` sends them for a table that is whole."""
    rows = record(0, [changes_of(ORDERS, "insert", [(None, [n, "a"]) for n in range(3)])])
    mended = [
        changes_of(ORDERS, "read", [(None, [1, "b"])]),
        changes_of(ORDERS, "delete", [([n], None) for n in (2, 7)], before_present=b"\1"),
    ]
    assert copies_of(rows, load_record(1, mended, part=Part.REPAIR, shard="#UNKNOWN"))[-1] == {
        ORDERS: [(0, "a"), (1, "b")]
    }


def test_event_of_a_load_names_its_load_table_and_part() -> None:
    read = change("read", [(None, [1, "a"])])
    definition = statement("CREATE TABLE orders (id INT)")
    found = events_of(
        load_record(0, [definition], part=Part.BEGIN, shard="#UNKNOWN"),
        load_record(1, [read], last_barrier=0),
        load_record(2, [read], part=Part.WHOLE, shard="#UNKNOWN", last_barrier=0),
        load_record(3, part=Part.END, shard="#UNKNOWN", last_barrier=2),
        load_record(4, [read], part=Part.REPAIR, shard="#UNKNOWN", last_barrier=3),
        record(5, [change("insert", [(None, [2, "b"])])], last_barrier=4),
    )
    assert [event.kind for event in found] == [Kind.LOAD] * 5 + [Kind.TRANSACTION]
    assert [event.load for event in found] == [*(LoadEvent("l1", part, ORDERS) for part in Part), None]
    assert [event.barrier for event in found] == [True, False, True, True, True, False]
    assert [event.gtid is None for event in found] == [True] * 5 + [False]
    (rows,) = found[1].changes
    assert isinstance(rows, RowChanges)
    assert (rows.action, [row.after for row in rows.rows]) == (Action.READ, [{"id": 1, "v": "a"}])
    assert list(found[3].changes) == []


@pytest.mark.parametrize("metadata", [{}, {"load": "l1", "load_part": "middle", "load_schema": "a", "load_table": "b"}])
def test_event_of_a_load_that_does_not_say_which_is_damage(metadata: dict[str, str]) -> None:
    (event,) = events_of(load_record(0, [change("read", [(None, [1, "a"])])]) | {"metadata": metadata})
    with pytest.raises(LogDamaged) as refused:
        _ = event.load
    assert {"seqno": 0, "at": "t-0@2"}.items() <= refused.value.where.items()
