"""A producer goes online under other filters than the log's last epoch had: tables join, or it is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from connector.clock import SystemClock
from connector.config.model import Config
from connector.errors import PreflightError
from connector.kafka.prepared_records import PreparedState
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.definition import Definitions, TableDefinition
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.pending import Pending, PendingSet
from connector.log.transaction.position import SourcePosition
from connector.log.writing.online import OnlinePlan, SourceFound, TailFound
from connector.producer.going_online import GoingOnline, _LogFound
from connector.producer.ownership import EpochOwnership
from connector.schema import framing
from tests.support.log_objects import LOG, UUID, control, finished, position

JOINS = TableName("shop", "joins")
IN_LOG = TableName("shop", "published")
OLD, NEW = {"do": ["shop.t"]}, {"do": ["shop.*"]}


@dataclass
class Source:
    """A source of whose tables one joins whatever the filters were."""

    joins: Mapping[TableName, TableName] = field(default_factory=lambda: {JOINS: IN_LOG})
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    def check_widened(self, before: Mapping[str, Any] | None, accepted: Sequence[str]) -> Mapping[TableName, TableName]:
        self.asked.append((before, tuple(accepted)))
        return self.joins


def facts(capture: Mapping[str, Any] | None) -> SourceFound:
    return SourceFound(
        source_id="db1:3306", server_uuid=UUID, now=77, log_id=LOG, start=SourcePosition("f", 4), capture=capture
    )


def prepared_in(*epochs: int) -> PreparedState:
    """XA transactions, each prepared by a producer that went online in one of these epochs."""
    return PreparedState(
        PendingSet(
            Pending(
                xid=f"x{epoch}", attempt=f"{epoch}.1", batches=1, messages=1, gtid=None, start=SourcePosition("f", 4),
                time=1,
            )
            for epoch in epochs
        )
    )  # fmt: skip


def found(prepared: PreparedState, *captures: Mapping[str, Any] | None) -> _LogFound:
    """A log of one event, with an epoch for each of these filters."""
    state = control(0, *[1] * (len(captures) - 1))
    epochs = tuple(replace(one, capture=capture) for one, capture in zip(state.epochs, captures, strict=True))
    last = replace(position(0), gtid_set=None, finished=replace(finished(0), gtid=None), prepared=prepared.pending.kept)
    return _LogFound(
        control_end=1,
        control=replace(state, epochs=epochs),
        position=last,
        prepared=prepared,
        tails={0: TailFound(Seqno(0), Epoch(len(captures)), end=1)},
    )


def decided(log: _LogFound, now: Mapping[str, Any] | None, source: Source, **fields: Any) -> OnlinePlan:
    folder = fields.pop("folder", None)
    given: dict[str, Any] = {"service": "shop", "source": {"records": {"dir": folder}}}
    going = GoingOnline(
        config=Config.model_validate(given),
        source=source,  # type: ignore[arg-type]
        clock=SystemClock(),
        stop=Event(),
        ownership=EpochOwnership(),
        framing=framing(),
        **fields,
    )
    return going._decide(log, facts(now))


def test_tables_that_join_are_loaded_as_they_are_published() -> None:
    source = Source()
    plan = decided(found(PreparedState(), NEW, OLD), NEW, source, accept_partial=("shop.other",))
    assert source.asked == [(OLD, ("shop.other",))]  # the filters of the last epoch count
    (load,) = plan.loads
    assert (load.table, load.published, load.asked_at, load.asked_by) == (JOINS, IN_LOG, 77, "source.filters")
    assert plan.control.load_requests == {JOINS: load}


def test_tables_that_join_are_there_for_the_history_of_tables() -> None:
    """CREATE TABLE IF NOT EXISTS finds them, and CREATE DATABASE IF NOT EXISTS their schema."""
    log, others = found(PreparedState(), OLD), TableName("others", "t")
    kept = TableDefinition(TableLayout(TableName("shop", "t"), (Column("a", "int"),)), "latin1")
    before = Definitions({kept.name: kept}, {"shop": "latin1"})
    log = replace(log, control=replace(log.control, tables=before))
    plan = decided(log, NEW, Source({JOINS: JOINS, kept.name: kept.name, others: others}))
    assert plan.tables is not None
    assert plan.control.tables == plan.tables
    assert {name: bool(one.unknown) for name, one in plan.tables.tables.items()} == {
        kept.name: False,  # of a schema that was captured: its definitions were followed
        JOINS: True,
        others: True,
    }
    assert plan.tables.schemas == {"shop": "latin1", "others": ""}
    assert decided(log, OLD, Source()).tables is None
    log = replace(log, control=replace(log.control, tables=None))
    assert decided(log, NEW, Source()).tables is None  # there is no history


@pytest.mark.parametrize("snapshot", [False, True])
def test_no_table_joins_under_the_same_filters_or_before_the_initial_load(snapshot: bool) -> None:
    log, source = found(PreparedState(), OLD), Source()
    assert log.position is not None
    log = replace(log, position=replace(log.position, snapshot=snapshot))
    assert decided(log, NEW if snapshot else OLD, source).loads == []
    assert source.asked == []


def test_no_table_joins_while_transactions_are_prepared() -> None:
    log = found(prepared_in(1), OLD)
    with pytest.raises(PreflightError, match="tables join while XA transactions are prepared") as refused:
        decided(log, NEW, Source())
    assert (refused.value.where["tables"], refused.value.where["xids"]) == ("shop.joins", "x1")
    assert decided(log, NEW, Source({})).loads == []  # none joins


@pytest.mark.parametrize(
    ("epochs", "prepared", "now", "refused"),
    [
        ((OLD,), (1,), NEW, True),
        ((OLD, NEW), (1,), NEW, True),  # prepared before a change that another producer was allowed, without a store
        ((OLD, NEW), (2, 1), NEW, True),
        ((NEW, OLD), (1,), NEW, True),  # the last epoch has other filters, which the store's rows are of
        ((OLD, NEW), (2,), NEW, False),
        ((NEW, NEW), (1, 2), NEW, False),
        ((OLD,), (), NEW, False),
    ],
)
def test_a_record_store_takes_no_prepared_rows_of_other_filters(
    epochs: tuple[Any, ...], prepared: tuple[int, ...], now: Any, refused: bool, tmp_path: Path
) -> None:
    log = found(prepared_in(*prepared), *epochs)
    assert decided(log, now, Source({})).epoch.epoch == len(epochs) + 1  # without a store
    if not refused:
        assert decided(log, now, Source({}), folder=tmp_path).epoch.epoch == len(epochs) + 1
        return
    with pytest.raises(PreflightError, match="filters have changed while XA transactions are prepared") as told:
        decided(log, now, Source({}), folder=tmp_path)
    assert told.value.where["xids"] == " ".join(sorted(f"x{epoch}" for epoch in prepared))
