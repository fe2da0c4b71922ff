"""The metrics of a store say what it has, and where the rows were that it was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from connector.errors import Unsupported
from connector.log.ids import Epoch, Seqno
from connector.producer.records.gauges import watch_records
from connector.records.database import Database
from connector.records.versions import Versions
from tests.unit.producer.records.event_log import CREATE, LOG, Log, delete, insert, update

SERVICE = "watched"


def value(name: str, **labels: str) -> float:
    found = REGISTRY.get_sample_value(f"thl_records_{name}", {"service": SERVICE, **labels})
    assert found is not None
    return found


def lookups() -> list[float]:
    return [value("lookups_total", found=where) for where in ("memory", "disk", "nowhere")]


def test_lookups_are_counted_by_where_the_rows_are(tmp_path: Path) -> None:
    log = Log(tmp_path / "store")
    log.ddl(CREATE)
    log.event(insert({0: 1}, {0: 2}))
    watch_records(SERVICE, log.completion.versions, Seqno(1))
    before = lookups()
    log.event(update(({0: 1}, {1: 7})))
    assert lookups() == [before[0] + 1, before[1], before[2]]
    log.completion.close()
    log.open()
    watch_records(SERVICE, log.completion.versions, Seqno(2))
    log.event(update(({0: 1}, {1: 8}), ({0: 2}, {1: 8})))
    assert lookups() == [before[0] + 1, before[1] + 2, before[2]]
    with pytest.raises(Unsupported):
        log.event(delete({0: 9}))
    assert lookups() == [before[0] + 1, before[1] + 2, before[2] + 1]
    log.completion.close()


def test_events_that_are_missing_and_the_oldest_one_are_shown_while_the_store_reads_the_log(tmp_path: Path) -> None:
    versions = Versions(Database(tmp_path / "store", cache_bytes=1 << 20), LOG, horizon=100_000, cache_bytes=1 << 20)
    watch_records(SERVICE, versions, Seqno(9))
    assert (value("lag_events"), value("oldest_seqno")) == (10, -1)
    versions.begin_at(Seqno(7), Epoch(1))
    assert (value("lag_events"), value("oldest_seqno")) == (3, 6)
    for seqno in range(7, 11):
        versions.finish(Seqno(seqno), Epoch(1))
    assert (value("lag_events"), value("oldest_seqno")) == (0, 6)
    versions.close()


def test_the_size_is_that_of_the_files(tmp_path: Path) -> None:
    versions = Versions(Database(tmp_path / "store", cache_bytes=1 << 20), LOG, horizon=100_000, cache_bytes=1 << 20)
    watch_records(SERVICE, versions, Seqno(0))
    before = value("size_bytes")
    versions.put(b"r1", bytes(100_000))
    versions.finish(Seqno(0), Epoch(1))
    versions.flush(sync=True)
    assert value("size_bytes") > before
    versions.close()
    assert value("size_bytes") == sum(path.stat().st_size for path in (tmp_path / "store").iterdir())
