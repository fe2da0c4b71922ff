"""Reads a heartbeat from the target: the row in its copy of source.heartbeat_table. Claims nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from connector.log.transaction.layout import TableName
from connector.targets.open import read_heartbeat

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def heartbeat_time(url: str, service: str, table: TableName, name: str) -> int | None:
    """Return the time at which the newest heartbeat on the target was written.

    Args:
        url: the target's URL.
        service: the service.
        table: the heartbeat table; some sources keep its name in lower case.
        name: the name of the heartbeat.

    Returns:
        µs since 1970 UTC, by the source's clock; None: the target has no such heartbeat.

    Raises:
        TargetUnavailable: the target does not answer.
        ConfigError: the URL has an unknown scheme, or libpq refuses it.
    """
    text = read_heartbeat(url, service, table, name)
    if text is None:
        return None
    return (datetime.fromisoformat(text).replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
