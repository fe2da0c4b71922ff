"""Where a stream has to begin for a position."""

from __future__ import annotations

from connector.log.gtid.source_gtids import parse_gtids
from connector.log.transaction.position import PositionRecord
from connector.mysql.server.dump import AfterGtids, StreamStart


def start_after(position: PositionRecord, *, by_place: bool = False) -> StreamStart:
    """Behind all that was read.

    Args:
        position: how far the log is.
        by_place: by file and offset also where there are GTIDs: no transaction is without a place.
    """
    return position.resume if by_place or position.gtid_set is None else AfterGtids(position.gtid_set)


def start_redo(position: PositionRecord, *, by_place: bool = False) -> StreamStart:
    """At the last finished transaction: by its GTID, else by where it began; without one, behind all that was read."""
    finished = position.finished
    if finished is None:
        return start_after(position, by_place=by_place)
    if by_place or position.gtid_set is None or finished.gtid is None:
        return finished.start
    seen = parse_gtids(position.gtid_set)
    seen.remove(finished.gtid)
    return AfterGtids(str(seen))
