"""The load of a table stops for an error of its own, never for one of the brokers, of a disk or of the record store."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from connector.clock import SystemClock
from connector.errors import BrokerUnavailable, ConnectorError, DiskUnavailable, Fenced, RecordsDamaged, Unsupported
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.ids import Seqno
from connector.log.transaction.layout import TableName
from connector.producer.loads.known_loads import KnownLoads
from connector.producer.loads.round_publication import RoundPublication

NAME = TableName("shop", "t")
LOADING = TableLoad(table=NAME, load="l1", state=LoadState.LOADING, begin=Seqno(1), last=Seqno(1))


def published(error: ConnectorError) -> tuple[LoadState, object]:
    """The state of a load within whose rows an error occurs, and what is returned or raised then."""
    loads = KnownLoads("shop", SystemClock())
    loads.ask(LoadRequest(table=NAME, load="l1", asked_at=1, asked_by="me"))
    loads.changed(LOADING)

    def fail(*_: object) -> None:
        raise error

    online = SimpleNamespace(publisher=SimpleNamespace(put=lambda _: None), encoder=SimpleNamespace(open=False))
    at: Any = SimpleNamespace(publish=fail, online=online)
    opened: Any = SimpleNamespace()
    result: object
    try:
        result = RoundPublication(loads, SystemClock(), Event())._publish_rows(at, opened, {NAME: LOADING}, set())
    except ConnectorError as raised:
        result = raised
    return loads.states[NAME].state, result


@pytest.mark.parametrize("kind", [RecordsDamaged, DiskUnavailable, BrokerUnavailable, Fenced])
def test_an_error_that_is_no_tables_fault_stops_no_load(kind: type[ConnectorError]) -> None:
    error = kind("it fails")
    assert published(error) == (LoadState.LOADING, error)


def test_an_error_of_a_table_stops_its_load_alone() -> None:
    assert published(Unsupported("a value that is not understood")) == (LoadState.STOPPED, None)
