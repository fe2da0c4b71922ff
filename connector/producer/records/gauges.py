"""The metrics of an open record store."""

from __future__ import annotations

import math

from connector import metrics
from connector.log.ids import Seqno
from connector.records.versions import Versions


def watch_records(service: str, versions: Versions, last: Seqno) -> None:
    """Let the metrics of a store be read whenever they are asked for, until another one is watched.

    Args:
        service: the service.
        versions: the store.
        last: the last finished event of the log when the store was opened.
    """
    memory, disk, nowhere = (metrics.records_lookups.labels(service, found) for found in ("memory", "disk", "nowhere"))

    def count(in_memory: int, on_disk: int, missing: int) -> None:
        memory.inc(in_memory)
        disk.inc(on_disk)
        nowhere.inc(missing)

    versions.count_lookups = count
    metrics.records_size.labels(service).set_function(lambda: _size(versions))
    metrics.records_lag.labels(service).set_function(lambda: max(0, last - versions.seqno))
    metrics.records_oldest.labels(service).set_function(lambda: versions.oldest - 1)


def _size(versions: Versions) -> float:
    try:
        return versions.size
    except OSError:
        return math.nan  # the producer itself finds the folder away
