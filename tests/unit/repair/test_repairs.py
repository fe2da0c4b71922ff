"""What `thl verify --repair` asks for, what it refuses, and when its wait ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from connector.errors import ConnectorError, PreflightError
from connector.log.epochs.control import ControlState, EpochRecord
from connector.log.epochs.fork import Forked, Range
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.mysql.snapshot.information_schema import SourceTable
from connector.mysql.snapshot.key_ranges import KeyColumn
from connector.repair import mending, repairs
from connector.repair.mending import Mending
from connector.repair.repairs import _described, _keys
from connector.verify.report import Difference, DifferenceKind, TableReport
from connector.verify.source import ComparedTable
from connector.verify.values import ComparedColumn, ValueForm

NAME = TableName("shop", "t")
COLUMNS = (ComparedColumn("id", ValueForm.NUMBER), ComparedColumn("b", ValueForm.BYTES))
COMPARED = ComparedTable(NAME, COLUMNS, (0, 1), COLUMNS, NAME)
LAYOUT = TableLayout(NAME, (Column("id", "int"), Column("b", "binary(2)")), (0, 1))
KEY = (KeyColumn("`id`", "int"), KeyColumn("`b`", "binary"))
TABLE = SourceTable(LAYOUT, ("id", "b"), "ib", (None, None), True, KEY, "", True, 1, 1, "")
ASKED = LoadRequest(table=NAME, load="r1", asked_at=5, asked_by="a@b", keys=(("1", "00"),))


def a_report(*kinds: DifferenceKind, row: str = "id=1") -> TableReport:
    return TableReport("shop.t", 9, tuple(Difference(kind, row, key=(b"1", b"\0\xff")) for kind in kinds))


def control(request: LoadRequest | None = None, state: TableLoad | None = None) -> ControlState:
    requests = {} if request is None else {NAME: request}
    return ControlState(None, None, (), load_requests=requests, loads={} if state is None else {NAME: state})


def test_keys_are_the_texts_of_their_values() -> None:
    found = _keys(a_report(DifferenceKind.MISSING, DifferenceKind.EXTRA), COMPARED, TABLE, control())
    assert found == (("1", "00ff"), ("1", "00ff"))


@pytest.mark.parametrize(
    ("report", "compared", "published", "reason"),
    [
        (a_report(DifferenceKind.LOADING, row=""), COMPARED, 1, "being loaded, which mends it"),
        (a_report(DifferenceKind.CHANGED, DifferenceKind.MORE), COMPARED, 1, "more than 10,000 rows"),
        (a_report(DifferenceKind.EXCLUDED, row=""), COMPARED, 1, "as a whole: thl load shop.t"),
        (a_report(DifferenceKind.MISSING, row=""), COMPARED, 1, "as a whole: thl load shop.t"),
        (a_report(DifferenceKind.MISSING), replace(COMPARED, key=()), 1, "no primary key: thl load shop.t"),
        (a_report(DifferenceKind.COUNT), COMPARED, 1, "no primary key: thl load shop.t"),
        (a_report(DifferenceKind.CHANGED), replace(COMPARED, changes=((0, lambda one: one),)), 1, "changes its key"),
        (a_report(DifferenceKind.CHANGED), COMPARED, 2, "published under its name"),
    ],
)
def test_table_that_only_a_load_mends_is_refused(
    report: TableReport, compared: ComparedTable, published: int, reason: str
) -> None:
    with pytest.raises(ConnectorError, match=reason):
        _described({"shop.t": compared}, report, {NAME: published})


def test_rule_that_changes_another_column_than_the_key_is_no_obstacle() -> None:
    more = replace(COMPARED, key=(0,), changes=((1, lambda one: one),))
    assert _described({"shop.t": more}, a_report(DifferenceKind.CHANGED), {NAME: 1}) is more


@pytest.mark.parametrize(
    ("request_", "state", "reason"),
    [
        (replace(ASKED, keys=()), None, "being loaded, which mends it"),
        (replace(ASKED, keys=()), (LoadState.LOADING, 7), "being loaded, which mends it"),
        (replace(ASKED, keys=(), cancel=True), (LoadState.CANCELLED, 7), "begun and not ended"),
        (replace(ASKED, keys=()), (LoadState.STOPPED, 7), "begun and not ended"),
    ],
)
def test_table_that_targets_load_is_not_repaired(request_: LoadRequest, state: Any, reason: str) -> None:
    of = None if state is None else TableLoad(table=NAME, load="r1", state=state[0], begin=Seqno(state[1]))
    with pytest.raises(PreflightError, match=reason):
        _keys(a_report(DifferenceKind.CHANGED), COMPARED, TABLE, control(request_, of))


@pytest.mark.parametrize("state", [None, (LoadState.ENDED, 7), (LoadState.STOPPED, -1)])
def test_table_that_was_loaded_or_repaired_is_repaired(state: Any) -> None:
    of = None if state is None else TableLoad(table=NAME, load="r1", state=state[0], begin=Seqno(state[1]))
    assert _keys(a_report(DifferenceKind.CHANGED), COMPARED, TABLE, control(ASKED, of))


def test_keys_that_no_message_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repairs, "MOST_BYTES", 10)
    with pytest.raises(ConnectorError, match="have more than 10 bytes"):
        _keys(a_report(DifferenceKind.CHANGED, DifferenceKind.CHANGED), COMPARED, TABLE, control())


class Clock:
    """A tenth of a second passes at each look."""

    now_ = 0.0

    def monotonic(self) -> float:
        self.now_ += 0.1
        return self.now_

    def sleep(self, seconds: float) -> None:
        self.now_ += seconds


def mended(
    monkeypatch: pytest.MonkeyPatch, *looks: tuple[ControlState, int], seen: list[int] | None = None
) -> dict[str, str]:
    """What the wait for one repair returns at these looks, the last one again and again; `seen`: the events of each."""
    states = [*looks, *looks[-1:] * 100]

    class Log:
        def __init__(self, *_: object, **__: object) -> None: ...

        def __enter__(self) -> Log:
            return self

        def __exit__(self, *_: object) -> None: ...

        def control(self) -> ControlState:
            return states[0][0]

    class Target(Log):
        def view(self, _: str) -> Target:
            return self

        def __enter__(self) -> Any:
            applied = states.pop(0)[1]
            if seen is not None:
                seen.append(applied)
            return type("State", (), {"seqno": applied})

        def close(self) -> None: ...

    monkeypatch.setattr(mending, "LogReader", Log)
    monkeypatch.setattr(mending, "open_reader", Target)
    monkeypatch.setattr(mending, "send_requests", lambda *_: None)
    config: Any = type("Config", (), {"service": "shop"})
    clock: Any = Clock()
    return Mending(config, patience=3.0, clock=clock).mend({"shop.t": ASKED})


def state(now: LoadState, **fields: Any) -> TableLoad:
    return TableLoad(table=NAME, load="r1", state=now, last=Seqno(8), **fields)


def trapping(control: ControlState) -> ControlState:
    """A fork goes on without the repair's event."""
    forked = Forked("", (Range(Seqno(8), Seqno(8)),))
    epoch = EpochRecord(
        epoch=Epoch(2), first_seqno=Seqno(9), source_id="", server_uuid="", started=0, reason="forked", forked=forked
    )
    return replace(control, epochs=(epoch,))


def test_repair_whose_event_a_fork_leaves_out_is_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = control(ASKED, state(LoadState.ENDED, begin=Seqno(8)))
    again = TableLoad(table=NAME, load="r1", state=LoadState.ENDED, begin=Seqno(12), last=Seqno(12))
    repeated = trapping(control(ASKED, again))
    looks = ((first, 7), (trapping(first), 11), (repeated, 11), (repeated, 12))
    seen: list[int] = []
    assert mended(monkeypatch, *looks, seen=seen) == {}
    assert seen == [7, 11, 11, 12]


def test_wait_ends_once_the_target_has_the_repairs_event(monkeypatch: pytest.MonkeyPatch) -> None:
    done = control(ASKED, state(LoadState.ENDED))
    assert mended(monkeypatch, (control(ASKED), 5), (done, 7), (done, 8)) == {}


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ((control(ASKED), 5), "not applied yet: thl load --status"),
        ((control(ASKED, state(LoadState.ENDED)), 7), "not applied yet: thl load --status"),
        ((control(replace(ASKED, load="r2", asked_at=6)), 5), "another load of shop.t"),
        ((control(ASKED, state(LoadState.STOPPED, why="its key has changed")), 5), "was stopped: its key has changed"),
        ((trapping(control(ASKED, state(LoadState.ENDED, begin=Seqno(8)))), 9), "not applied yet: thl load --status"),
        ((control(ASKED, state(LoadState.CANCELLED, why="cancelled by ann")), 5), "cancelled by ann"),
    ],
)
def test_repair_that_is_not_made_is_named_with_the_reason(
    seen: tuple[ControlState, int], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (reason,) = mended(monkeypatch, seen).values()
    assert why in reason


def test_own_request_that_is_not_visible_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    older = control(replace(ASKED, load="l0", asked_at=4), TableLoad(table=NAME, load="l0", state=LoadState.ENDED))
    assert mended(monkeypatch, (older, 5), (control(ASKED, state(LoadState.ENDED)), 8)) == {}
