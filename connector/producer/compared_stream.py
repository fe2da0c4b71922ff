"""Reads the source after the log's last event, once the source has shown that event again."""

from __future__ import annotations

import logging
from threading import Event
from typing import Final

from connector.clock import Clock
from connector.errors import HistoriesDiffer
from connector.log.epochs.control import ControlState
from connector.log.epochs.history import History
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.definition import Definitions, Item, Redefined
from connector.log.transaction.event_id import EventId
from connector.log.transaction.position import Finished, PositionRecord
from connector.log.transaction.xa import Decided, Logged, Prepared
from connector.log.writing.online import check_redo, comparable, incomparable
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Numbering
from connector.producer.prepared_xa import redone
from connector.producer.sources.source import EventSource, Stream
from connector.retrying import Stopped

LOG: Final = logging.getLogger(__name__)
READ: Final = 0.2  # seconds after which a read returns without items, so that a stop is noticed
REDO_PATIENCE: Final = 120.0  # seconds without items from a source that has the transaction


class ComparedStream:
    """The source's stream at the log's position, and the source's tables there.

    Args:
        source: the server or the files.
        service: the service, for log lines.
        clock: the clock for `REDO_PATIENCE`.
        stop: set to stop the producer.
        tables: the source's tables at the log's position; None if they are not known.
    """

    def __init__(
        self, source: EventSource, service: str, clock: Clock, stop: Event, tables: Definitions | None
    ) -> None:
        self.tables = tables
        self._source = source
        self._service = service
        self._clock = clock
        self._stop = stop
        self._stream: Stream | None = None
        self._ahead: list[Item] = []  # read after the compared transaction; published first

    @property
    def ended(self) -> bool:
        """True once all files were read; a server's stream never ends, but raises an error."""
        return self._stream is not None and self._stream.ended and not self._ahead

    def read(self, position: PositionRecord) -> list[Item]:
        """Return the next items in the source's order; empty if none came within `READ` seconds.

        Args:
            position: the position in Kafka, at which the stream opens after an initial load.

        Raises:
            SourceUnavailable: the source does not answer.
        """
        if self._ahead:
            items, self._ahead = self._ahead, []
            return items
        if self._stream is None:
            self._stream = self._source.after(position, self.tables)
        return self._stream.read(READ)

    def push_back(self, items: list[Item]) -> None:
        """Give items again with the next `read`."""
        self._ahead = items + self._ahead

    def open(self, position: PositionRecord, control: ControlState, server_uuid: str, encoder: Encoder) -> None:
        """Open the stream at a position, after the source has shown that it still has the log's last transaction.

        Args:
            position: the position in Kafka.
            control: the control records, with the epochs up to that of the position.
            server_uuid: the UUID of the source.
            encoder: encodes the compared transaction; the caller resets its numbering afterwards.

        Raises:
            HistoriesDiffer: the source has another transaction there.
            Stopped: `stop` was set.
        """
        self.close()
        finished = comparable(control, position)
        if reason := incomparable(control, position):
            LOG.warning(
                f"the log's last event is not compared with the source: {reason}",
                extra={"service": self._service, "seqno": position.last_finished},
            )
        if finished is None or _of_snapshot(finished):
            self._stream = self._source.after(position, self.tables)
        elif not self._source.holds(finished):
            LOG.warning(
                "the source has purged the log's last transaction: not compared",
                extra={"service": self._service, "seqno": finished.seqno, "event_id": finished.event_id},
            )
            self._stream = self._source.after(position, self.tables)
        else:
            self._stream = self._source.redo(position, self.tables)
            written = History.of(control, position.last_finished).covering(finished.seqno)
            encoder.begin(
                Numbering(
                    epoch=finished.epoch,
                    next_seqno=finished.seqno,
                    tails=position.tails,
                    last_barrier=position.last_barrier,
                )
            )
            self._compare(self._stream, encoder, finished, same_server=written.server_uuid == server_uuid)
            if position.gtid_set is None or position.server_uuid == server_uuid:
                # A stream that began at a file and offset would repeat the transactions that the filters dropped since
                # the compared one, and an XA COMMIT must not come twice.
                self.close()
                self._stream = self._source.after(position, self.tables)

    def close(self) -> None:
        """Close the source's stream. May be repeated."""
        self._ahead = []
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _compare(self, stream: Stream, encoder: Encoder, finished: Finished, *, same_server: bool) -> None:
        """Read the source up to the end of the log's last transaction, and compare their digests."""
        give_up = self._clock.monotonic() + REDO_PATIENCE
        while self._clock.monotonic() < give_up and not stream.ended:
            if self._stop.is_set():
                raise Stopped
            items = stream.read(READ)
            for index, item in enumerate(items):
                if isinstance(item, Redefined):
                    continue
                if not isinstance(item, PositionAdvance):
                    give_up = self._clock.monotonic() + REDO_PATIENCE
                if _compared(item, encoder, finished, same_server=same_server):
                    self._ahead = items[index + 1 :]
                    return
        raise HistoriesDiffer(
            "the source does not show the log's last transaction again",
            hint="does source.host name another server?",
            seqno=finished.seqno,
            gtid=finished.gtid,
            event_id=finished.event_id,
        )


def _compared(item: Logged, encoder: Encoder, finished: Finished, *, same_server: bool) -> bool:
    """Compare an item with the log's last transaction, if the item ends it.

    Returns:
        True if it does.

    Raises:
        HistoriesDiffer: the source has another transaction there.
    """
    if isinstance(item, PositionAdvance):
        if item.gtid is not None and item.gtid == finished.gtid:
            check_redo(finished, None)
        return False
    if isinstance(item, Decided):
        check_redo(finished, redone(finished, item), same_server=same_server)
        return True
    if isinstance(item, Prepared) and item.batch.ending is not None and not item.one_phase:
        check_redo(finished, None)
    fragments = encoder.encode_logged(item.batch if isinstance(item, Prepared) else item)
    if not fragments or fragments[-1].finished is None:
        return False
    check_redo(finished, fragments[-1].finished, same_server=same_server)
    return True


def _of_snapshot(finished: Finished) -> bool:
    """True for an event of an initial load, which is not in the source's binary log."""
    event = EventId.parse(finished.event_id)
    return (event.file, event.end) == (finished.start.file, finished.start.offset)
