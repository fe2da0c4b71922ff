"""The state of a repair at its beginning and at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from connector.errors import SourceChanged
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableName
from connector.producer.loads.repair import begin_repair, end_repair

NAME = TableName("shop", "t")
ASKED = LoadRequest(
    table=NAME, load="r1", asked_at=5, asked_by="a@b", keys=(("1",),), key_columns=("`id` int  ",), targets=("lake",)
)


@dataclass
class Opened:
    """A table of a round."""

    created: str = "2026-11-25 22:00:00"
    key_columns: tuple[str, ...] = ("`id` int  ",)


def begun(table: Opened) -> TableLoad:
    found: Any = table
    return begin_repair(ASKED, found, 7)


def test_repair_has_no_event_before_its_rows() -> None:
    state = begun(Opened())
    assert (state.load, state.state, state.begin, state.targets) == ("r1", LoadState.LOADING, NO_SEQNO, ("lake",))


def test_table_that_was_made_again_with_the_same_key_is_repaired() -> None:
    assert begun(Opened("2026-11-25 23:00:00")) == begun(Opened())


@pytest.mark.parametrize("columns", [(), ("`id` bigint  ",), ("`id` int  ", "`b` int  "), ("`b` int  ",)])
def test_repair_of_a_table_with_another_key_stops(columns: tuple[str, ...]) -> None:
    with pytest.raises(SourceChanged, match="columns of the primary key have changed") as stopped:
        begun(Opened(key_columns=columns))
    assert stopped.value.where["table"] == NAME


def test_ended_repair_names_its_event() -> None:
    state = begun(Opened())
    ended = end_repair(state, 2, Seqno(40), 9)
    assert (ended.state, ended.rows, ended.begin, ended.last, ended.at) == (LoadState.ENDED, 2, 40, 40, 9)
    without = end_repair(state, 0, NO_SEQNO, 9)
    assert (without.state, without.begin, without.last) == (LoadState.ENDED, NO_SEQNO, NO_SEQNO)
