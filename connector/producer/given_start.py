"""The start that `thl produce --start` names where the log exists, which goes on where it ends.

A supervisor may give the option at every start, so a log that is past it is no error: one line says that it is ignored.
A start that the log has not reached asks for a log that leaves transactions out, and is refused.
"""

from __future__ import annotations

import logging
from typing import Final

from connector.errors import PreflightError
from connector.log.epochs.control import EpochRecord
from connector.log.gtid.source_gtids import lacking, of_mariadb
from connector.log.rules import NEW_LOG
from connector.log.transaction.position import PositionRecord
from connector.mysql.server.source_state import named_start

LOG: Final = logging.getLogger(__name__)
OF_A_NEW_LOG: Final = frozenset({"snapshot", "now", "earliest"})
OTHERWISE: Final = f"to begin elsewhere {NEW_LOG}; `thl load` loads tables again"


def check_start(start: str, position: PositionRecord, before: EpochRecord, server_uuid: str) -> None:
    """Check that a log that exists has reached a start.

    Args:
        start: as given.
        position: the log's.
        before: the log's first epoch.
        server_uuid: that of the source now.

    Raises:
        ConfigError: it is no start.
        PreflightError: it is after the log's position. That is not known where it names a file of another server; GTIDs
            that the log began with, and that a fork has taken away, are not after it.
    """
    if start in OF_A_NEW_LOG:
        return
    named = named_start(start)
    if named.gtid_set is not None:
        form = of_mariadb(named.gtid_set)
        known = [gtids for gtids in (position.gtid_set, before.gtid_set) if gtids and of_mariadb(gtids) is form]
        reached = not known or not all(lacking(named.gtid_set, gtids) for gtids in known)
    else:
        same = before.server_uuid == position.server_uuid == server_uuid
        reached = named.position is None or not same or named.position <= position.resume
    if not reached:
        raise PreflightError(
            "--start is after the log's position: the log would lack the transactions in between",
            hint=f"leave out --start: the log goes on from its position; {OTHERWISE}",
            start=start,
            **_place(position),
        )


def tell_of_start(start: str, service: str, position: PositionRecord) -> None:
    """Log that a start is ignored."""
    LOG.info(
        "--start is ignored: it is for a new log, and this one exists; it goes on from its position",
        extra={"service": service, "start": start, **_place(position), "hint": OTHERWISE},
    )


def _place(position: PositionRecord) -> dict[str, object]:
    return {"last_seqno": position.last_finished, "position": position.resume, "gtid_set": position.gtid_set or ""}
