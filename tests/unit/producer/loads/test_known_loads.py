"""The tables whose rows a load still has to bring: in them the record store leaves images partial."""

from __future__ import annotations

from dataclasses import replace

import pytest

from connector.clock import SystemClock
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.ids import Seqno
from connector.log.transaction.layout import TableName
from connector.producer.loads.known_loads import KnownLoads

SOURCE, LOG, RENAMED = TableName("shop", "t"), TableName("lake", "t"), TableName("lake", "renamed")
ASKED = LoadRequest(table=SOURCE, load="l1", asked_at=1, asked_by="me", published=LOG)
LOADING = TableLoad(table=SOURCE, load="l1", state=LoadState.LOADING, begin=Seqno(1), last=Seqno(1))


@pytest.fixture
def loads() -> KnownLoads:
    return KnownLoads("shop", SystemClock())


def test_a_table_that_is_to_be_loaded_is_awaited_by_its_name_in_the_log(loads: KnownLoads) -> None:
    assert not loads.awaits(LOG, "")
    loads.ask(ASKED)
    assert loads.awaits(LOG, "")
    assert not loads.awaits(SOURCE, "")


def test_a_table_that_was_renamed_in_its_load_is_awaited_by_the_loads_id(loads: KnownLoads) -> None:
    loads.ask(ASKED)
    loads.changed(LOADING)
    assert loads.awaits(RENAMED, "l1")
    assert not loads.awaits(RENAMED, "")
    assert not loads.awaits(RENAMED, "l0")


def test_a_repair_of_some_rows_brings_no_others(loads: KnownLoads) -> None:
    loads.ask(replace(ASKED, keys=(("1",),), key_columns=("`id` int  ",)))
    assert loads.outstanding()
    assert not loads.awaits(LOG, "l1")


@pytest.mark.parametrize("state", [LoadState.ENDED, LoadState.STOPPED, LoadState.CANCELLED])
def test_a_load_that_has_come_to_an_end_brings_no_more_rows(loads: KnownLoads, state: LoadState) -> None:
    loads.ask(ASKED)
    loads.changed(LOADING)
    assert loads.awaits(LOG, "l1")
    loads.changed(replace(LOADING, state=state))
    assert not loads.awaits(LOG, "l1")
