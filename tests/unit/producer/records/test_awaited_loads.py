"""Images that stay partial because a load that is asked for, or under way, brings their rows."""

from __future__ import annotations

import pytest

from connector.errors import Unsupported
from connector.log.epochs.loads import LoadRequest, LoadState
from connector.log.ids import Action, Kind, Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.producer.loads.known_loads import KnownLoads
from tests.unit.producer.records.event_log import CREATE, LAYOUT, Log, known, rows, update


@pytest.mark.parametrize("state", [LoadState.CANCELLED, LoadState.STOPPED])
def test_a_load_that_has_no_end_leaves_no_image_partial(log: Log, state: LoadState) -> None:
    log.load(Part.BEGIN, Statement("shop", CREATE, {}))
    log.completion.loads = known()
    (found,) = log.event(update(({0: 9}, {1: 1})))
    assert found.after
    log.close()
    log.open()
    log.completion.loads = known(state=state)
    with pytest.raises(Unsupported, match="its load was cancelled, or has stopped"):
        log.event(update(({0: 9}, {1: 1})))


def test_a_load_that_is_asked_for_leaves_images_partial_before_its_first_event(log: Log) -> None:
    log.completion.loads = known(asked="l2", state=LoadState.CANCELLED)
    (found,) = log.event(update(({0: 9}, {1: 1})))
    assert found.after
    log.completion.loads = known(asked="l2", cancel=True, state=None)
    with pytest.raises(Unsupported, match="does not know the row"):
        log.event(update(({0: 9}, {1: 1})))


BARE = TableLayout(TableName("shop", "bare"), LAYOUT.columns, (0,))


BARE_ROW = rows(Action.INSERT, (None, {0: 7, 2: "x"}), layout=BARE)


def awaited(state: LoadState | None = None) -> KnownLoads:
    made = known(state=state)
    made.ask(LoadRequest(table=BARE.name, load="l1", asked_at=1, asked_by="me"))
    return made


def test_an_insert_without_a_known_default_waits_for_the_load_that_is_asked_for(log: Log) -> None:
    """Else the load could never begin: what the log has before it stops the producer each time."""
    log.completion.loads = known(asked="else")
    with pytest.raises(Unsupported, match="its default is not known"):
        log.event(BARE_ROW)
    log.completion.go_back(Seqno(log.seqno - 1))
    log.completion.loads = awaited()
    (found,) = log.event(BARE_ROW)
    assert (found.action, found.data, found.before, found.after) == (Action.INSERT, BARE_ROW.data, b"", b"\x05")
    (found,) = log.event(rows(Action.UPDATE, ({0: 7}, {1: 1}), layout=BARE))
    assert found.after  # the row is not known
    assert log.completion.tables.entry(BARE.name).reason == "the log begins without its rows"


def test_an_insert_without_a_known_default_takes_the_place_of_a_row_whose_end_the_store_has_not_seen(log: Log) -> None:
    """As a cascade's that was not logged."""
    log.completion.loads = awaited()
    log.event(rows(Action.INSERT, (None, {0: 7, 1: 70, 2: "before"}), layout=BARE))
    log.event(BARE_ROW)
    (found,) = log.event(rows(Action.UPDATE, ({0: 7}, {1: 1}), layout=BARE))
    assert found.after


def test_an_insert_without_a_known_default_is_read_again_by_the_load_that_goes_on(log: Log) -> None:
    begun = LoadEvent("l1", Part.BEGIN, BARE.name).metadata()
    log.event(Statement("shop", CREATE.replace("shop.t", "shop.bare").replace(" DEFAULT 5", " NOT NULL"), {}),
              kind=Kind.LOAD, **begun)  # fmt: skip
    log.event(Statement("shop", "ALTER TABLE bare SOMETHING THAT IS NOT UNDERSTOOD", {}), kind=Kind.DDL)
    log.completion.tables.find_again(BARE.name, Seqno(log.seqno))
    log.completion.loads = awaited(LoadState.LOADING)
    (found,) = log.event(BARE_ROW)
    gone = rows(Action.DELETE, ({0: 7, 2: "x"}, None), layout=BARE)
    assert (found.action, found.data, found.before, found.after) == (gone.action, gone.data, gone.before, b"")
    assert log.completion.tables.find_again(BARE.name, Seqno(log.seqno))
