"""The target's position, and the one that the next commit writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from connector.log.compact.scan import Messages
from connector.log.compact.segment import Segment
from connector.log.format.header import FragmentHeader
from connector.log.gtid.gtid_runs import gtid_ranges
from connector.log.gtid.source_gtids import parse_gtids
from connector.log.ids import NO_SEQNO, LogId
from connector.log.transaction.position import TargetPosition


class NextPosition:
    """Follows the whole events that are collected for the next commit.

    Args:
        position: the target's position.
        log_id: the ID of the log.
        gtid_set: the transactions applied at that position; None if the source has no GTIDs.

    Attributes:
        current: the position of the last commit.
    """

    def __init__(self, position: TargetPosition, log_id: LogId, gtid_set: str | None) -> None:
        self.current = position
        self._log_id = log_id
        self._gtids = None if gtid_set is None else parse_gtids(gtid_set)
        self._consistent = position.consistent

    def begin_snapshot(self) -> None:
        """An initial load has begun: the target is not consistent before its end."""
        self._consistent = False

    def add(self, header: FragmentHeader) -> None:
        """Add a whole event.

        Args:
            header: of its last fragment.
        """
        if header.metadata.get("snapshot") == "end":
            self._consistent = True
            if found := header.metadata.get("gtid_set"):
                self._gtids = parse_gtids(found)
        elif self._gtids is not None and header.gtid is not None:
            self._gtids.add(header.gtid)

    def add_range(self, messages: Messages, first: int, end: int) -> None:
        """Add whole events of one fragment each, from index `first` to before `end`."""
        if self._gtids is not None:
            for gtid, _, count in messages.gtids(first, end):
                self._gtids.add(gtid, count)

    def add_segments(self, segments: Sequence[Segment]) -> None:
        """Add segments that together are consecutive events."""
        if self._gtids is not None:
            for gtid, count in gtid_ranges([(segment.gtids, segment.seqnos) for segment in segments]):
                self._gtids.add(gtid, count)

    def after(self, header: FragmentHeader, offsets: Mapping[int, int]) -> TargetPosition:
        """The position after the collected events.

        Args:
            header: of the last event.
            offsets: partition → the offset from which reading resumes, where it has changed.
        """
        before = self.current
        if header.seqno == before.rewound_from:
            self._consistent = True  # all replayed events are applied
        return TargetPosition(
            service=before.service,
            log_id=self._log_id,
            seqno=header.seqno,
            epoch=header.epoch,
            source_id=header.source_id,
            event_id=header.event_id or "",
            gtid_set=None if self._gtids is None else str(self._gtids),
            offsets={**before.offsets, **offsets},
            consistent=self._consistent,
            commit_time=header.commit_time or 0,
            rewound_from=before.rewound_from if header.seqno < before.rewound_from else NO_SEQNO,
        )
