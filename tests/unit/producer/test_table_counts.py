"""Rows and bytes of tables as metrics: those of events that are committed to Kafka, of a bounded number of tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY

from connector import metrics
from connector.clock import SystemClock
from connector.config.model import Config
from connector.log.epochs.control import ControlState
from connector.log.ids import Action, LogId, Seqno
from connector.log.transaction.batch import Rows, TransactionBatch
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.position import SourcePosition
from connector.log.writing.online import SourceFound, TailFound, decide
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from connector.producer.going_online import Online
from connector.producer.publish.publisher import Publisher
from tests.support import encoding as making

CONFIG = Config(service="counted")
FACTS = SourceFound(
    source_id="db:3306",
    server_uuid="3e11fa47-71ca-11e1-9e33-c80aa9429562",
    now=1,
    log_id=LogId("ab" * 16),
    start=SourcePosition("mysql-bin.000002", 4),
)


class Kafka:
    """Accepts every transaction."""

    def begin(self) -> None:
        pass

    def send(self, *_: Any) -> None:
        pass

    def commit(self) -> None:
        pass


def counted(table: str, what: str = "rows") -> float:
    labels = {"service": "counted", "schema": "shop" if table else "", "table": table}
    return REGISTRY.get_sample_value(f"thl_published_table_{what}_total", labels) or 0.0


def inserted(table: str, rows: int) -> TransactionBatch:
    layout = TableLayout(TableName("shop", table), (Column("id", "bigint", False, "", (), False),), (0,))
    values = [{"before": None, "after": [number]} for number in range(rows)]
    changes = making.encoded_rows(making.Change(layout, Action.INSERT, values))
    return TransactionBatch(making.BEGIN, [*changes], making.ENDING)


@pytest.fixture
def online(monkeypatch: pytest.MonkeyPatch) -> Online:
    monkeypatch.setattr(metrics, "_served", metrics._Served(tables=2))
    monkeypatch.setattr(
        metrics, "published_tables", metrics.TableCounts(metrics.published_table_rows, metrics.published_table_bytes)
    )
    limits = Limits(fragment=1 << 16, shard=1 << 20, message=1 << 20)
    encoder = Encoder(service="counted", source_id="db:3306", partitions=1, limits=limits)
    publisher = Publisher(CONFIG, Kafka(), SystemClock(), lambda _: None)  # type: ignore[arg-type]
    plan = decide(ControlState(None, None, ()), None, {0: TailFound()}, FACTS)
    publisher.online(plan, [])
    encoder.begin(Numbering(epoch=plan.epoch.epoch, next_seqno=Seqno(0), tails={}, last_barrier=Seqno(-1)))
    rest = SimpleNamespace()
    return Online(rest, publisher, encoder, rest, rest, rest, plan.control, 0)  # type: ignore[arg-type]


def test_tables_beyond_the_limit_are_counted_together_once_they_are_committed(online: Online) -> None:
    before = {table: counted(table) for table in ("orders", "items", "")}
    size = counted("orders", "bytes")
    online.put(online.encoder.encode(inserted("orders", 3)) + online.encoder.encode(inserted("items", 2)))
    online.put(online.encoder.encode(inserted("audit", 5)) + online.encoder.encode(inserted("clicks", 7)))
    online.put(online.encoder.encode(inserted("orders", 4)))
    online.publisher.drain()
    assert {table: counted(table) - before[table] for table in before} == {"orders": 7, "items": 2, "": 12}
    changes = inserted("orders", 7).changes
    assert counted("orders", "bytes") - size == sum(len(one.data) for one in changes if isinstance(one, Rows))
    assert (counted("audit"), counted("clicks")) == (0, 0)
