"""A commit that was divided in any segments is finished with each row once, however its events are read then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.applier.applier import Applier
from connector.applier.segment_changes import SegmentChanges
from connector.applier.stop_condition import ToSeqno
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.model import Config
from connector.log.compact.compact import Compactor
from connector.log.compact.history import history_tables
from connector.log.compact.metadata_columns import MetadataColumns, metadata_columns
from connector.log.compact.net_changes import NetChanges
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import Intent
from connector.targets.postgres.writer_shares import divide, divisible
from tests.support.compact_model import Counted, Keyed, Partly
from tests.support.fragments import change, encoded, record, scanned
from tests.support.memory_target import MemoryTarget
from tests.unit.applier import test_core
from tests.unit.applier.test_core import LOG_ID, TOPIC, history, table

WRITERS = 3
INTENT = Intent(
    log_id=LOG_ID, first=Seqno(1), last=Seqno(1), epoch=Epoch(1), writers=WRITERS, hash_version=1, undivided=frozenset()
)
METADATA = metadata_columns([("seqno", "thl_seqno")])
TABLES = (TableName("shop", "orders"), TableName("shop", "journal"))
KEYS, QUEUED = (0, 1, 2), ([0, 0], [1, 0])  # what is there before the commit
Event = list[dict[str, Any]]


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    """Transactions on a table with a key, whose updates lack columns, and on one without a key: a queue."""
    orders, journal = dict.fromkeys(KEYS, 0), [*QUEUED]
    made: list[Event] = []
    for _ in range(draw(st.integers(2, 12))):
        event: Event = []
        for what in draw(st.lists(st.sampled_from(["insert", "v", "id", "delete", "put", "get"]), max_size=4)):
            free = sorted(set(range(8)) - set(orders))
            if what == "insert" and free:
                key = draw(st.sampled_from(free))
                orders[key] = 0
                event.append(change("insert", [(None, [key, 0])], table="orders"))
            elif what in ("v", "id", "delete") and orders:
                key = draw(st.sampled_from(sorted(orders)))
                minimal = {"before_present": b"\1", "after_present": b"\2" if what == "v" else b"\1"}
                if what == "v":
                    orders[key] = draw(st.integers(1, 9))
                    event.append(change("update", [([key], [orders[key]])], table="orders", **minimal))
                elif what == "delete":
                    del orders[key]
                    event.append(change("delete", [([key], None)], table="orders", before_present=b"\1"))
                elif free:
                    new = draw(st.sampled_from(free))
                    orders[new] = orders.pop(key)
                    event.append(change("update", [([key], [new])], table="orders", **minimal))
            elif what == "put":
                journal.append([draw(st.integers(0, 1)), 0])
                event.append(change("insert", [(None, journal[-1])], table="journal", key=()))
            elif what == "get" and journal:
                event.append(change("delete", [(journal.pop(), None)], table="journal", key=()))
        made.append(event)
    return made


def values_of(made: Sequence[Event]) -> list[bytes]:
    return [encoded(record(seqno, event, rows=len(event))) for seqno, event in enumerate(made, 1)]


def first_try(values: Sequence[bytes], ends: Sequence[int], columns: MetadataColumns | None) -> list[NetChanges]:
    """The changes of a commit that tasks have compacted in segments which end there."""
    compactor, found = Compactor(TOPIC, columns), SegmentChanges(TOPIC, columns)
    for begin, end in zip([0, *ends], [*ends, len(values)], strict=True):
        for message in scanned(values[begin:end]):
            compactor.add(message)
        found.add(compactor, MagicMock(rows=0, size=0, changes=[]))
    return found.drain()


def finishing(values: Sequence[bytes], steps: st.DataObject, columns: MetadataColumns | None) -> list[NetChanges]:
    """The changes of the same commit when it is finished: read in any steps."""
    target, staged = MemoryTarget(), list[NetChanges]()
    target.stage = lambda changes, **_: staged.extend(changes)  # type: ignore[method-assign]
    test_core.Rig(target, history([0], 0)).accept(table([encoded(record(0, []))]))
    assert target.position is not None
    target.position = replace(target.position, intent=replace(INTENT, last=Seqno(len(values))))
    rig, at = test_core.Rig(target, history([0], len(values)), columns=columns), 0
    while at < len(values):
        end = min(len(values), at + steps.draw(st.integers(1, len(values))))
        rig.accept(table(values[at:end], offset=2 + at))
        at = end
    assert rig.core.done
    return staged


def shares(changes: Sequence[NetChanges], undivided: frozenset[TableName]) -> list[list[NetChanges]]:
    """What each writer gets, as `Writers.stage` divides it."""
    found: list[list[NetChanges]] = [[] for _ in range(WRITERS)]
    for net in changes:
        if net.layout.name in undivided:
            found[0].append(net)
            continue
        for mine, share in zip(found, divide(net, WRITERS), strict=True):
            if share is not None:
                mine.append(share)
    return found


@settings(max_examples=60, deadline=None)
@given(events(), st.data(), st.sampled_from([None, METADATA]))
def test_each_row_is_applied_once(made: list[Event], data: st.DataObject, columns: MetadataColumns | None) -> None:
    values = values_of(made)
    ends = sorted(data.draw(st.sets(st.integers(1, len(values) - 1)), label="segments end"))
    before = first_try(values, ends, columns)
    moving = {net.layout.name for net in before if net.partial is not None and len(net.partial.moved)}
    undivided = frozenset(moving | {net.layout.name for net in before if not divisible(net.layout)})
    after = finishing(values, data, columns)
    for net in after:
        if net.layout.name not in undivided:
            assert divisible(net.layout)
            assert net.partial is None or not len(net.partial.moved)
    committed = data.draw(st.sets(st.integers(0, WRITERS - 1)), label="writers that had committed")
    both = zip(shares(before, undivided), shares(after, undivided), strict=True)
    parts = [first if number in committed else then for number, (first, then) in enumerate(both)]
    assert rows_of(parts, columns) == rows_of([before], columns)


def rows_of(parts: Sequence[list[NetChanges]], columns: MetadataColumns | None) -> list[Any]:
    """The rows after these shares. Without a key, a row's metadata is of the event; deletes know none: not compared."""
    more = () if columns is None else (0,)
    orders, journal = Partly((0,)), Counted((*row, *more) for row in QUEUED)
    orders.rows = {(key,): (key, 0, *more) for key in KEYS}
    models: dict[TableName, Keyed | Counted] = dict(zip(TABLES, (orders, journal), strict=True))
    for net in (net for share in parts for net in share):
        if net.layout.key or columns is None:
            models[net.layout.name].do(net)
    return [sorted(orders.rows.values()), sorted(journal.rows.elements())]


@pytest.mark.parametrize("until", [None, ToSeqno(Seqno(9))])
def test_tasks_do_not_compact_the_events_of_an_intent(until: ToSeqno | None) -> None:
    applier = Applier(Config(service="shop"), MagicMock(), SystemClock(), MagicMock(), until=until)
    assert applier._compaction(None).compact
    assert not applier._compaction(INTENT).compact


def test_tasks_keep_the_changes_of_tables_with_a_history() -> None:
    config = Config(service="shop", target=Target(history=("shop.orders",)))
    applier = Applier(config, MagicMock(), SystemClock(), MagicMock())
    assert applier._compaction(None).history == history_tables(["shop.orders"])


def test_rows_of_histories_count_among_the_bytes_of_a_commit_of_segments() -> None:
    compactor = Compactor(TOPIC, history=history_tables(["shop.orders"]))
    for message in scanned([encoded(record(1, [change("insert", [(None, [1, "x" * 1000])])]))]):
        compactor.add(message)
    changes = compactor.drain()
    (rows,) = (net for net in changes if net.history_of is not None)
    found = SegmentChanges(TOPIC, None)
    found.add(Compactor(TOPIC), MagicMock(rows=1, size=100, changes=changes))
    assert found.size == 100 + len(rows.inserts.data) > 1100
