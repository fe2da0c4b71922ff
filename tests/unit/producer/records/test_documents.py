"""JSON documents that the source logs as differences (PARTIAL_JSON) from documents that the before images lack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.clock import SystemClock
from connector.errors import RecordsDamaged, Unsupported
from connector.log.epochs.control import ControlState, LogRecord
from connector.log.epochs.loads import LoadRequest
from connector.log.ids import Action, Epoch, Kind, Seqno
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionStart
from connector.log.transaction.layout import Column, TableLayout
from connector.log.transaction.load import LoadEvent, Part
from connector.producer.loads.known_loads import KnownLoads
from connector.producer.records.catch_up import NOWHERE
from tests.support.binlog_writer import packed
from tests.unit.producer.records.event_log import LOG, NAME, Log, rows, values

CREATE = "CREATE TABLE shop.t (id INT NOT NULL PRIMARY KEY, a JSON, n INT, b JSON)"
LAYOUT = TableLayout(
    NAME, (Column("id", "int", nullable=False), Column("a", "json"), Column("n", "int"), Column("b", "json")), (0,)
)
REPLACE, INSERT, REMOVE = 0, 1, 2
ONE, TRUE = b"\x05\x01\x00", b"\x04\x01"


def difference(operation: int, path: str, value: bytes = b"") -> bytes:
    """A difference; the value in binary JSON."""
    after = packed(len(value)) + value if value else b""
    return bytes([operation]) + packed(len(path)) + path.encode() + after


def update(*given: tuple[dict[int, Any], dict[int, Any]]) -> Rows:
    return rows(Action.UPDATE, *given, layout=LAYOUT)


def document(value: Any) -> str:
    return json.dumps(value)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "store")
    made.ddl(CREATE)
    made.event(rows(Action.INSERT, (None, {0: 1, 1: document({"k": 0, "l": [5]}), 2: 7, 3: None}), layout=LAYOUT))
    yield made
    made.close()


SET = difference(REPLACE, "$.k", ONE)


def test_differences_are_applied_to_the_document_of_the_store(log: Log) -> None:
    (found,) = log.event(update(({0: 1}, {1: SET}), ({0: 1}, {1: difference(INSERT, "$.l[1]", TRUE)})))
    first, second = document({"k": 1, "l": [5]}), document({"k": 1, "l": [5, True]})
    before = document({"k": 0, "l": [5]})
    assert values(found) == [([1, before, 7, None], [1, first, 7, None]), ([1, first, 7, None], [1, second, 7, None])]
    (found,) = log.event(update(({0: 1}, {0: 2, 1: difference(REMOVE, "$.k")})))
    assert values(found) == [([1, second, 7, None], [2, document({"l": [5, True]}), 7, None])]
    (found,) = log.event(rows(Action.DELETE, ({0: 2}, None), layout=LAYOUT))
    assert values(found) == [([2, document({"l": [5, True]}), 7, None], None)]


def test_documents_that_are_there_stay_as_they_are(log: Log) -> None:
    (found,) = log.event(update(({0: 1}, {1: SET, 3: document([1])})))
    assert values(found)[0][1] == [1, document({"k": 1, "l": [5]}), 7, document([1])]


@pytest.mark.parametrize(
    ("given", "column", "path", "why"),
    [
        ({3: SET}, "b", None, "the JSON document before the differences is NULL"),
        ({1: difference(REMOVE, "$.none")}, "a", "$.none", "a difference does not fit"),
        ({1: b"\0\7"}, "a", None, "outside of its event"),
    ],
    ids=["of NULL", "of another document", "no differences"],
)
def test_differences_that_do_not_fit_tell_of_a_damaged_store(
    log: Log, given: dict[int, bytes], column: str, path: str | None, why: str
) -> None:
    with pytest.raises(RecordsDamaged, match=f"contradict the record store: .*{why}") as raised:
        log.event(update(({0: 1}, given)))
    place = {"service": "shop", "seqno": 2, "file": "f", "pos": 4, "table": NAME, "column": column}
    where = raised.value.where
    assert {name: where.get(name) for name in (*place, "path")} == {**place, "path": path}
    assert "thl records rebuild" in raised.value.hint
    assert "source.filters.ignore" in raised.value.hint


@pytest.mark.parametrize(
    ("given", "path", "why"),
    [(b"\7", None, "unknown operation 7"), (difference(REMOVE, "$**.k"), "$**.k", "path that is not understood")],
    ids=["operation", "path"],
)
@pytest.mark.parametrize("event", ["of the source", "of the log"])
def test_differences_that_are_not_understood_stop_with_their_place_and_the_remedy(
    log: Log, given: bytes, path: str | None, why: str, event: str
) -> None:
    with pytest.raises(Unsupported, match=why) as raised:
        if event == "of the source":
            log.event(update(({0: 1}, {1: given})))
        else:
            begin = TransactionStart(1, 1, None, 0, 0, NOWHERE, Kind.TRANSACTION, {})
            log.completion.follow(TransactionBatch(begin, [update(({0: 1}, {1: given}))], None), Seqno(2), Epoch(1))
    file, pos = ("f", 4) if event == "of the source" else (None, None)  # the log does not tell where an event begins
    place = {"service": "shop", "seqno": 2, "file": file, "pos": pos, "table": NAME, "column": "a", "path": path}
    assert {name: raised.value.where.get(name) for name in place} == place
    assert "source.filters.ignore" in raised.value.hint
    assert "SET GLOBAL binlog_row_value_options = ''" in raised.value.hint


def loads(*targets: str) -> KnownLoads:
    """The loads of a producer that is asked for one."""
    made = KnownLoads("shop", SystemClock())
    request = LoadRequest(table=NAME, load="l1", asked_at=1, asked_by="me", targets=targets)
    made.restore(ControlState(LogRecord(LOG, 1), None, (), load_requests={NAME: request}))
    return made


@pytest.mark.parametrize("partial", [[], ["shop.*"]], ids=["refused", "allowed"])
def test_differences_of_a_row_that_is_not_known_are_refused(tmp_path: Path, partial: list[str]) -> None:
    """Even where its image may stay partial: no reader of the log could apply them."""
    log = Log(tmp_path / "other", partial)
    log.ddl(CREATE)
    assert log.event(update(({0: 9}, {2: 1})))[0].after if partial else True
    with pytest.raises(Unsupported, match="has a JSON document as differences") as raised:
        log.event(update(({0: 9}, {1: SET})))
    assert "thl load shop.t" in raised.value.hint
    assert "binlog_row_value_options" in raised.value.hint
    log.close()


@pytest.mark.parametrize("begun", [False, True], ids=["asked for", "under way"])
def test_a_row_of_differences_is_deleted_until_its_load_brings_it(log: Log, begun: bool) -> None:
    if begun:
        log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    log.completion.loads = loads()
    (found,) = log.event(update(({0: 9}, {1: SET})))
    gone = rows(Action.DELETE, ({0: 9}, None), layout=LAYOUT)
    assert (found.action, found.data, found.before, found.after) == (Action.DELETE, gone.data, gone.before, b"")
    assert log.completion.tables.find_again(NAME, Seqno(log.seqno)) is begun
    if not begun:  # the store does not know its rows until they are loaded
        assert "changed the key of a row" in log.completion.tables.entry(NAME).reason
    (found,) = log.event(update(({0: 9}, {2: 1})))
    assert found.after


def test_a_row_of_differences_whose_image_has_all_columns_is_not_known_either(log: Log) -> None:
    log.completion.loads = loads()
    (found,) = log.event(update(({0: 9}, {0: 9, 1: SET, 2: 1, 3: None})))
    assert found.action is Action.DELETE
    (found,) = log.event(update(({0: 9}, {2: 1})))
    assert found.after


@pytest.mark.parametrize("begun", [False, True], ids=["asked for", "under way"])
def test_differences_stop_while_only_some_targets_get_the_row(log: Log, begun: bool) -> None:
    if begun:
        begin = LoadEvent("l1", Part.BEGIN, NAME, targets=("one",)).metadata()
        log.event(Statement("shop", CREATE, {}), kind=Kind.LOAD, **begin)
    log.completion.loads = loads("one")
    with pytest.raises(Unsupported, match="has a JSON document as differences") as raised:
        log.event(update(({0: 9}, {1: SET})))
    assert ("for some targets alone" in raised.value.message) is begun
    assert "cancelled" not in raised.value.message
