"""The newest load of each table, as commands show it and wait for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from connector.errors import PreflightError
from connector.log.epochs.control import ControlState, EpochRecord
from connector.log.epochs.fork import Forked, Range
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.epochs.newest_load import WAITING, NewestLoad, outcome
from connector.log.ids import Epoch, Seqno
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


def the_outcome(
    asked: LoadRequest, newest: LoadRequest | None, state_: TableLoad | None, *, trapped: tuple[Range, ...] = ()
) -> NewestLoad | None:
    requests = {} if newest is None else {NAME: newest}
    epochs = (EpochRecord(
        epoch=Epoch(1), first_seqno=Seqno(0), source_id="", server_uuid="", started=0, reason="",
        forked=Forked("", trapped),
    ),)  # fmt: skip
    states = {} if state_ is None else {NAME: state_}
    return outcome(asked, ControlState(None, None, epochs, load_requests=requests, loads=states))


REPAIR: Final = replace(ASKED, keys=(("1",),))
OLDER: Final = replace(ASKED, load="a", asked_at=6)


@pytest.mark.parametrize("asked", [ASKED, REPAIR])
@pytest.mark.parametrize(
    ("newest", "state_", "trapped"),
    [
        (None, None, ()),
        (OLDER, None, ()),  # ours is not committed yet
        (OLDER, state("a", LoadState.STOPPED), ()),
        (ASKED, None, ()),
        (ASKED, state("a", LoadState.ENDED), ()),
        (ASKED, state("b", LoadState.LOADING), ()),
        (ASKED, state("b", LoadState.ENDED), TRAPPED),
    ],
)
def test_load_that_goes_on_has_no_outcome(
    asked: LoadRequest, newest: LoadRequest | None, state_: TableLoad | None, trapped: tuple[Range, ...]
) -> None:
    assert the_outcome(asked, newest, state_, trapped=trapped) is None


def test_outcome_of_a_load_that_ended_names_its_rows_and_its_last_event() -> None:
    ended = the_outcome(ASKED, ASKED, state("b", LoadState.ENDED))
    assert ended is not None
    assert (ended.state, ended.rows, ended.last) == ("ended", 5, 20)
    cancelled = the_outcome(CANCEL, CANCEL, state("b", LoadState.CANCELLED))
    assert cancelled is not None
    assert cancelled.state == "cancelled"


@pytest.mark.parametrize(
    ("asked", "newest", "state_", "said"),
    [
        (ASKED, ASKED, state("b", LoadState.STOPPED), "the load of shop.orders was stopped$"),
        (REPAIR, REPAIR, state("b", LoadState.CANCELLED), "the repair of shop.orders was cancelled: by bob@there$"),
        (ASKED, CANCEL, None, "the load of shop.orders was cancelled$"),
        (
            REPAIR,
            replace(ASKED, load="c", asked_at=8),
            None,
            "another load of shop.orders was asked for meanwhile, which takes the place of this repair",
        ),
    ],
)
def test_load_that_was_not_made_is_an_error_with_its_reason(
    asked: LoadRequest, newest: LoadRequest, state_: TableLoad | None, said: str
) -> None:
    with pytest.raises(PreflightError, match=said):
        the_outcome(asked, newest, state_)
