"""The newest load of each table, as commands show it and wait for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from connector.log.epochs.fork import Range
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.epochs.newest_load import WAITING, NewestLoad
from connector.log.ids import Seqno
from connector.log.transaction.layout import TableName

NAME: Final = TableName("shop", "orders")
ASKED: Final = LoadRequest(table=NAME, load="b", asked_at=7, asked_by="ann@here", targets=("lake",))
CANCEL: Final = replace(ASKED, cancel=True)
TRAPPED: Final = (Range(Seqno(20), Seqno(30)),)


def state(load: str, now: LoadState) -> TableLoad:
    why = "by bob@there" if now is LoadState.CANCELLED else ""
    return TableLoad(table=NAME, load=load, state=now, begin=Seqno(10), last=Seqno(20), rows=5, why=why)


@pytest.mark.parametrize(
    ("request_", "state_", "trapped", "shown"),
    [
        (ASKED, None, (), ("b", WAITING, None, "")),
        (ASKED, state("a", LoadState.ENDED), (), ("b", WAITING, None, "")),
        (ASKED, state("a", LoadState.CANCELLED), (), ("b", WAITING, None, "")),
        (ASKED, state("b", LoadState.LOADING), (), ("b", "loading", 5, "")),
        (ASKED, state("b", LoadState.ENDED), (), ("b", "ended", 5, "")),
        (ASKED, state("b", LoadState.ENDED), TRAPPED, ("b", WAITING, None, "")),
        (ASKED, state("b", LoadState.LOADING), TRAPPED, ("b", WAITING, None, "")),
        (ASKED, state("b", LoadState.STOPPED), TRAPPED, ("b", "stopped", 5, "")),
        (CANCEL, None, (), ("b", "cancelled", None, "")),
        (CANCEL, state("a", LoadState.ENDED), (), ("b", "cancelled", None, "")),
        (CANCEL, state("b", LoadState.LOADING), (), ("b", "loading", 5, "")),
        (CANCEL, state("b", LoadState.CANCELLED), (), ("b", "cancelled", 5, "by bob@there")),
        (None, state("b", LoadState.ENDED), (), ("b", "ended", 5, "")),
    ],
)
def test_what_is_shown_is_of_one_load(
    request_: LoadRequest | None,
    state_: TableLoad | None,
    trapped: tuple[Range, ...],
    shown: tuple[str, str, int | None, str],
) -> None:
    requests = {} if request_ is None else {NAME: request_}
    states = {} if state_ is None else {NAME: state_}
    (newest,) = NewestLoad.each(requests, states, trapped)
    assert (newest.load, newest.state, newest.rows, newest.why) == shown
    assert newest.targets == (() if request_ is None else ("lake",))
