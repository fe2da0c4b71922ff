"""Which tables a load makes whole after an event."""

from __future__ import annotations

from typing import Any

import pytest

from connector.log.epochs.fork import Range
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad, loaded_after, targets_with_unfinished
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableName

NAME = TableName("shop", "orders")
KEYS = (("1",), ("2",))


def asked(load: str = "l1", **more: Any) -> LoadRequest:
    return LoadRequest(table=NAME, load=load, asked_at=1, asked_by="a@b", **more)


def state(state: LoadState, **more: Any) -> TableLoad:
    fields = {"load": "l1", "begin": Seqno(10), "last": Seqno(20), **more}
    return TableLoad(table=NAME, state=state, **fields)


@pytest.mark.parametrize(
    ("request_", "states", "seqno", "loaded"),
    [
        pytest.param(asked(), [], 99, True, id="asked for"),
        pytest.param(asked(cancel=True), [], 0, False, id="cancelled before it began"),
        pytest.param(asked(), [state(LoadState.LOADING)], 9, True, id="begins later"),
        pytest.param(asked(), [state(LoadState.ENDED)], 9, True, id="has ended later"),
        pytest.param(asked(), [state(LoadState.ENDED)], 10, False, id="the event begins it"),
        pytest.param(asked(), [state(LoadState.LOADING)], 11, False, id="began before"),
        pytest.param(asked(), [state(LoadState.STOPPED)], 9, False, id="has stopped"),
        pytest.param(asked(), [state(LoadState.CANCELLED)], 9, False, id="was cancelled"),
        pytest.param(asked(cancel=True), [state(LoadState.LOADING)], 9, False, id="is being cancelled"),
        pytest.param(asked("l2"), [state(LoadState.ENDED)], 99, True, id="asked for again"),
        pytest.param(asked(keys=KEYS), [], 99, False, id="a repair is asked for"),
        pytest.param(asked(keys=KEYS), [state(LoadState.ENDED)], 9, False, id="is repaired later"),
    ],
)
def test_load_makes_a_table_whole_after_the_events_before_its_beginning(
    request_: LoadRequest, states: list[TableLoad], seqno: int, loaded: bool
) -> None:
    found = loaded_after(Seqno(seqno), "", [request_], {one.table: one for one in states})
    assert found == ({NAME} if loaded else frozenset())


def test_trapped_load_begins_again_after_every_event() -> None:
    trapped = [Range(Seqno(15), Seqno(17))]
    assert loaded_after(Seqno(99), "", [asked()], {NAME: state(LoadState.ENDED)}, trapped) == {NAME}


def test_table_published_under_another_name_is_known_by_it() -> None:
    assert loaded_after(Seqno(9), "", [asked(published=("pub", "sold"))], {}) == {TableName("pub", "sold")}


@pytest.mark.parametrize(("target", "loaded"), [("", False), ("shelf", False), ("lake", True), ("pond", True)])
def test_load_for_some_targets_makes_the_table_whole_on_them_alone(target: str, loaded: bool) -> None:
    request_ = asked(targets=("lake", "pond"))
    assert loaded_after(Seqno(9), target, [request_], {}) == ({NAME} if loaded else frozenset())


@pytest.mark.parametrize(
    ("requests", "states", "wanted", "expected"),
    [
        pytest.param([], [], ("lake",), ("lake",), id="first load"),
        pytest.param([asked()], [state(LoadState.ENDED)], ("lake",), ("lake",), id="the last one has ended"),
        pytest.param([asked()], [], ("lake",), (), id="one for all waits"),
        pytest.param([asked()], [state(LoadState.LOADING)], ("lake",), (), id="one for all has begun"),
        pytest.param([asked(targets=("pond",))], [], ("lake",), ("lake", "pond"), id="one for another waits"),
        pytest.param(
            [asked("l2", targets=("pond",))],
            [state(LoadState.STOPPED, targets=("sea",))],
            ("lake",),
            ("lake", "pond", "sea"),
            id="one waits that replaced one",
        ),
        pytest.param(
            [asked(cancel=True, targets=("pond",))],
            [state(LoadState.CANCELLED, targets=("pond",))],
            ("lake",),
            ("lake", "pond"),
            id="a cancelled one has begun",
        ),
        pytest.param([asked(cancel=True)], [], ("lake",), ("lake",), id="was cancelled before it began"),
        pytest.param(
            [asked()], [state(LoadState.STOPPED, begin=NO_SEQNO)], ("lake",), ("lake",), id="has not begun and stopped"
        ),
        pytest.param([asked(targets=("pond",))], [state(LoadState.LOADING)], (), (), id="for all"),
    ],
)
def test_load_that_replaces_an_unfinished_one_is_for_its_targets_too(
    requests: list[LoadRequest], states: list[TableLoad], wanted: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    newest = {one.table: one for one in requests}
    found = targets_with_unfinished(NAME, wanted, newest, {one.table: one for one in states})
    assert found == expected


def test_load_whose_end_a_fork_has_trapped_is_not_finished() -> None:
    trapped = [Range(Seqno(15), Seqno(27))]
    newest, states = {NAME: asked(targets=("pond",))}, {NAME: state(LoadState.ENDED, targets=("pond",))}
    assert targets_with_unfinished(NAME, ("lake",), newest, states, trapped) == ("lake", "pond")
