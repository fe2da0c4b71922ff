"""The loads of tables that are not ended, and those that a request ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from connector.log.epochs.fork import Range
from connector.log.epochs.loads import (
    LoadRequest,
    LoadState,
    TableLoad,
    cancelled,
    outstanding,
    targets_with_unfinished,
)
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableName

NAME: Final = TableName("shop", "orders")
ASKED: Final = LoadRequest(table=NAME, load="b", asked_at=7, asked_by="ann@here")
REPAIR: Final = replace(ASKED, keys=(("1",), ("2",)), targets=("lake",))
CANCEL: Final = replace(ASKED, cancel=True)


def state(load: str, now: LoadState, first: int = 10, last: int = 20) -> dict[TableName, TableLoad]:
    return {NAME: TableLoad(table=NAME, load=load, state=now, begin=Seqno(first), last=Seqno(last))}


@pytest.mark.parametrize(
    ("states", "trapped", "found"),
    [
        ({}, (), [None]),
        (state("a", LoadState.ENDED), (), [None]),
        (state("a", LoadState.LOADING), (), [None]),
        (state("b", LoadState.LOADING), (), ["b"]),
        (state("b", LoadState.ENDED), (), []),
        (state("b", LoadState.STOPPED), (), []),
        (state("b", LoadState.CANCELLED), (), []),
        (state("b", LoadState.ENDED), (Range(Seqno(20), Seqno(30)),), [None]),
        (state("b", LoadState.LOADING), (Range(Seqno(20), Seqno(30)),), [None]),
        (state("b", LoadState.ENDED), (Range(Seqno(21), Seqno(30)),), []),
    ],
)
def test_load_is_outstanding_until_its_own_state_ends_it(
    states: dict[TableName, TableLoad], trapped: tuple[Range, ...], found: list[str | None]
) -> None:
    assert [one and one.load for _, one in outstanding([ASKED], states, trapped)] == found


@pytest.mark.parametrize(
    ("states", "written"),
    [
        ({}, ["b"]),  # it has not begun
        (state("a", LoadState.ENDED), ["b"]),
        (state("a", LoadState.LOADING), ["a"]),
        (state("b", LoadState.LOADING), ["b"]),
        (state("b", LoadState.ENDED), []),
        (state("b", LoadState.CANCELLED), []),
        (state("b", LoadState.STOPPED), []),
    ],
)
def test_cancel_ends_the_load_of_its_table_once(states: dict[TableName, TableLoad], written: list[str]) -> None:
    assert outstanding([CANCEL], states, (Range(Seqno(20), Seqno(30)),)) == []
    (ended, *more) = [*cancelled([CANCEL], states, 99), None]
    assert [one.load for one in (ended,) if one] == written
    if ended is not None:
        assert (ended.state, ended.at, ended.why) == (LoadState.CANCELLED, 99, "cancelled by ann@here")
        assert list(cancelled([replace(CANCEL, load=ended.load)], {NAME: ended}, 100)) == []
        assert more == [None]


def test_request_that_does_not_cancel_ends_nothing() -> None:
    assert list(cancelled([ASKED], state("b", LoadState.LOADING), 99)) == []


@pytest.mark.parametrize(
    ("states", "trapped", "keys"),
    [
        ({}, (), [REPAIR.keys]),
        (state("a", LoadState.ENDED), (), [REPAIR.keys]),
        (state("b", LoadState.ENDED), (), []),
        pytest.param(state("a", LoadState.LOADING), (), [()], id="it has replaced the request of a load"),
        pytest.param(state("a", LoadState.CANCELLED), (), [()], id="targets have begun a load that has no end"),
        pytest.param(state("a", LoadState.ENDED), (Range(Seqno(20), Seqno(30)),), [()], id="the load is trapped"),
        pytest.param(state("b", LoadState.ENDED), (Range(Seqno(20), Seqno(30)),), [()], id="perhaps a load is, too"),
    ],
)
def test_repair_is_a_load_of_the_table_where_targets_need_one(
    states: dict[TableName, TableLoad], trapped: tuple[Range, ...], keys: list[object]
) -> None:
    found = outstanding([REPAIR], states, trapped)
    assert [request.keys for request, _ in found] == keys
    assert all(request.targets == (() if not request.keys else ("lake",)) for request, _ in found)


def test_repair_that_never_began_leaves_no_load_to_other_targets() -> None:
    stopped = {NAME: replace(state("b", LoadState.STOPPED)[NAME], begin=NO_SEQNO, last=NO_SEQNO)}
    assert targets_with_unfinished(NAME, ("pond",), {NAME: REPAIR}, stopped) == ("pond",)
    assert targets_with_unfinished(NAME, ("pond",), {NAME: REPAIR}, {}) == ("pond",)
    (again,) = outstanding([replace(REPAIR, load="c")], stopped)
    assert again[0].keys == REPAIR.keys
