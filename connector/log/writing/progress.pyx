"""The producer's position while it publishes. Compiled: every event moves it.

The one rule: while an event is open, nothing of the position moves but `open` itself. So the position in Kafka
beside an unfinished event always leads back to the event's beginning.
"""

from connector.log.transaction.finished cimport Finished
from connector.log.writing.fragment cimport Fragment
from connector.log.gtid.gtid_range cimport GtidRange

from connector.errors import LogDamaged
from connector.log.gtid.source_gtids import parse_gtids
from connector.log.transaction.position import Open, PositionRecord


cdef class Progress:
    """The position as it is to be written with the next Kafka commit.

    `accept` and `passed` cost little and are called for everything in order; `record` writes the GTID set out and is
    called once a commit.

    Args:
        record: the position so far, e.g. `OnlinePlan.position`.
        server_uuid: the source that is read from now on.
    """

    def __init__(self, record, str server_uuid=""):
        self._reads = server_uuid
        self._server_uuid = record.server_uuid
        self._finished = record.finished
        self._resume = record.resume
        self._gtids = None if record.gtid_set is None else parse_gtids(record.gtid_set)
        self._range = GtidRange()  # of what is not in `_gtids` yet
        self._open = record.open
        self._tails = dict(record.tails)
        self._barrier = record.last_barrier
        self._snapshot = record.snapshot
        self._prepared = record.prepared

    @property
    def open(self):
        """The unfinished event in the log, if any."""
        return self._open

    @property
    def next_seqno(self):
        """The seqno of the unfinished event, or else of the next one."""
        return self.next()

    cpdef accept(self, Fragment fragment):
        """Move the position over a fragment of the log.

        Raises:
            LogDamaged: the log would get a gap or two interleaved events; nothing has moved.
        """
        cdef Finished finished = fragment.finished
        cdef bint fits = fragment.seqno == self.next()
        if self._open is None:
            fits = fits and fragment.fragno == 0
        else:
            fits = fits and fragment.fragno == self._open.fragno + 1 and fragment.partition == self._open.partition
        if not fits:
            raise LogDamaged(
                "The producer was about to damage the log",
                seqno=fragment.seqno,
                fragno=fragment.fragno,
                partition=fragment.partition,
                next_seqno=self.next(),
                next_fragno=0 if self._open is None else self._open.fragno + 1,
                open=self._open,
            )
        if finished is None:
            self._open = Open(fragment.seqno, fragment.fragno, fragment.partition)
            return
        if finished.seqno != fragment.seqno or fragment.resume is None:
            raise LogDamaged(
                "A last fragment lacks the end of its event", seqno=fragment.seqno, fragno=fragment.fragno
            )
        self._open = None
        self._finished = finished
        self._resume = fragment.resume
        self._server_uuid = self._reads
        self.see(finished.gtid)
        self._tails[fragment.partition] = fragment.seqno
        if fragment.barrier:
            self._barrier = fragment.seqno

    def passed(self, passed):
        """Move the position past a part of the source's log that is not captured.

        Returns:
            True if the position moved. It does not while an event is open; a later advance covers the same part.
        """
        if self._open is not None:
            return False
        self._resume = passed.end
        self._server_uuid = self._reads
        self.see(passed.gtid)
        return True

    def keep(self, kept):
        """Set the pending XA transactions; their topic has the same ones with the next Kafka commit.

        Raises:
            LogDamaged: an event is open: after a crash reading would resume where others were pending.
        """
        if self._open is not None:
            raise LogDamaged("The producer was about to forget what is prepared", open=self._open)
        self._prepared = kept

    def snapshot_ended(self, str gtid_set):
        """The initial load's last event is in the log.

        Args:
            gtid_set: the GTIDs that the load contains; the position's set starts with them.
        """
        self._snapshot = False
        self._range.begin(None)
        self._gtids = None if gtid_set is None else parse_gtids(gtid_set)

    def record(self):
        """The position for the next Kafka commit."""
        self.gather()
        return PositionRecord(
            finished=self._finished,
            resume=self._resume,
            gtid_set=None if self._gtids is None else str(self._gtids),
            open=self._open,
            tails=dict(self._tails),
            last_barrier=self._barrier,
            snapshot=self._snapshot,
            server_uuid=self._server_uuid,
            prepared=self._prepared,
        )

    cdef int64_t next(self):
        return 0 if self._finished is None else self._finished.seqno + 1

    cdef see(self, str gtid):
        """Add a GTID of the log or of a position advance; one that follows the GTID before is only counted."""
        if gtid is None or self._gtids is None or self._range.goes_on(gtid):
            return
        self.gather()
        self._gtids.add(gtid)
        self._range.begin(gtid)

    cdef gather(self):
        """Add the counted range to the set."""
        if self._gtids is not None and self._range.first is not None:
            self._gtids.add(self._range.first, self._range.count)
