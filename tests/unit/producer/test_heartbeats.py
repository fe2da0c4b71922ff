"""The producer recognises the heartbeats of its service in the source's log."""

from __future__ import annotations

from threading import Event
from typing import Any

import pytest

from connector.config.filters import Filters
from connector.config.model import Config
from connector.config.source import Source
from connector.errors import ConfigError, SourceUnavailable
from connector.log.ids import Action
from connector.log.transaction.batch import PositionAdvance, TransactionBatch
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.producer import heartbeats as module
from connector.producer.heartbeats import HeartbeatLabels, heartbeats
from tests.support.batches import BEGIN, END, ENDING, inserts, rows
from tests.support.clock import PATIENCE

COLUMNS = (Column("service", "varchar(200)"), Column("name", "varchar(200)"), Column("written", "datetime(6)"))
TABLE = TableLayout(TableName("ops", "beat"), COLUMNS, (0, 1))
CONFIG = Config(service="shop", source=Source(heartbeat_table="ops.Beat", heartbeat_interval=0.01))


def a_beat(service: str, name: str, layout: TableLayout = TABLE) -> list[Any]:
    old, new = [service, name, "2026-11-21 06:00:00.000000"], [service, name, "2026-11-21 06:00:01.000000"]
    return [rows(layout, Action.DELETE, (old, None)), rows(layout, Action.INSERT, (None, new))]


def labels(piece: TransactionBatch) -> dict[str, str]:
    labelled = HeartbeatLabels(CONFIG).labelled([piece])[0]
    assert isinstance(labelled, TransactionBatch)
    assert (labelled.changes, labelled.ending) == (piece.changes, piece.ending)
    return dict(labelled.begin.metadata) if labelled.begin else {}


def test_an_event_of_a_heartbeat_has_its_name() -> None:
    assert labels(TransactionBatch(BEGIN, a_beat("shop", "mine"), ENDING)) == {"heartbeat": "mine"}
    assert labels(TransactionBatch(BEGIN, a_beat("shop", "first")[1:], ENDING)) == {"heartbeat": "first"}


@pytest.mark.parametrize(
    "piece",
    [
        TransactionBatch(BEGIN, a_beat("other", "mine"), ENDING),
        TransactionBatch(BEGIN, a_beat("shop", "mine", TableLayout(TableName("ops", "other"), COLUMNS)), ENDING),
        TransactionBatch(BEGIN, [inserts(1)], ENDING),
        TransactionBatch(BEGIN, [inserts(1), *a_beat("shop", "mine")], ENDING),
        TransactionBatch(BEGIN, a_beat("shop", "mine")[:1], ENDING),
        TransactionBatch(BEGIN, a_beat("shop", "mine"), None),
        TransactionBatch(None, a_beat("shop", "mine"), ENDING),
        TransactionBatch(BEGIN, [], ENDING),
    ],
)
def test_other_batches_are_not_labelled(piece: TransactionBatch) -> None:
    assert labels(piece) == {}


def test_other_items_are_not_changed() -> None:
    passed = PositionAdvance(END, None)
    assert HeartbeatLabels(CONFIG).labelled([passed]) == [passed]


@pytest.mark.parametrize("table", ["", "beat", ".beat", "ops."])
def test_a_heartbeat_table_without_a_name_is_refused(table: str) -> None:
    with pytest.raises(ConfigError) as refused:
        HeartbeatLabels(Config(source=Source(heartbeat_table=table)))
    assert "schema.table" in refused.value.hint
    assert "table" not in refused.value.where


def test_a_heartbeat_table_that_is_not_published_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        HeartbeatLabels(Config(source=Source(heartbeat_table="ops.beat", filters=Filters(do=("shop",)))))
    assert refused.value.where["table"] == "ops.beat"


def test_heartbeats_are_written_at_once_and_at_intervals_though_the_source_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: list[str] = []
    enough = Event()

    def write(source: Source, service: str, name: str) -> None:
        assert (source, service) == (CONFIG.source, "shop")
        names.append(name)
        if len(names) == 4:
            enough.set()
        if len(names) == 2:
            raise SourceUnavailable("gone")

    monkeypatch.setattr(module, "write_heartbeat", write)
    with heartbeats(CONFIG, lambda: pytest.fail("asked")):
        assert enough.wait(PATIENCE)
    written = len(names)
    assert names[:4] == ["online", "interval", "interval", "interval"]
    assert not Event().wait(0.1)
    assert len(names) == written


def test_no_heartbeats_are_written_without_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "write_heartbeat", lambda *_: pytest.fail("written"))
    with heartbeats(Config(source=Source(heartbeat_table="ops.beat")), lambda: True):
        pass


def test_first_heartbeat_waits_for_a_producer_whose_source_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(heartbeat_table="ops.beat", heartbeat_interval=0.01, semi_sync=True)
    monkeypatch.setattr(module, "POLL", 0.01)
    asked, written, publishes = Event(), Event(), Event()

    def online() -> bool:
        asked.set()
        return publishes.is_set()

    def write(*_: object) -> None:
        assert publishes.is_set()
        written.set()

    monkeypatch.setattr(module, "write_heartbeat", write)
    with heartbeats(Config(service="shop", source=source), online):
        assert asked.wait(PATIENCE)
        assert not written.is_set()
        publishes.set()
        assert written.wait(PATIENCE)
    publishes.clear()
    with heartbeats(Config(service="shop", source=source), online):
        pass  # one that never goes online ends
