"""An initial load that goes on in the next epoch after the brokers were lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from connector.log.ids import Seqno
from connector.log.transaction.batch import TransactionBatch
from connector.log.transaction.definition import Definitions
from connector.producer.sources.source import Load


class LoadInProgress:
    """A load, and those of its batches that are not in Kafka for certain.

    The source's sessions stay open while the brokers are away, so the view stays the same, and nothing is read twice.
    What is kept is bounded: by the publisher's queue and one Kafka transaction.

    Args:
        load: the opened load.
        server_uuid: the server that it reads.
    """

    def __init__(self, load: Load, server_uuid: str) -> None:
        self._server_uuid = server_uuid
        self.gtid_set = load.position[1]
        self._load = load
        self._batches = load.batches()
        self._waiting: deque[TransactionBatch] = deque()  # not sent, or to be sent again
        self._sent: deque[tuple[Seqno, TransactionBatch]] = deque()

    @property
    def tables(self) -> Definitions | None:
        """The source's tables at the load's position."""
        return self._load.tables

    def __iter__(self) -> Iterator[TransactionBatch]:
        """The next batches; one that was not followed by `sent` comes again."""
        while True:
            if not self._waiting:
                batch = next(self._batches, None)
                if batch is None:
                    return
                self._waiting.append(batch)
            yield self._waiting[0]

    def sent(self, seqno: Seqno, committed: Seqno) -> None:
        """The newest batch became an event.

        Args:
            seqno: the event's.
            committed: the last event that is in Kafka.
        """
        self._sent.append((seqno, self._waiting.popleft()))
        self._forget(committed)

    def go_back(self, last_finished: Seqno, server_uuid: str) -> bool:
        """Continue after an event, in another epoch.

        Args:
            last_finished: the last event that is in Kafka.
            server_uuid: the source of the epoch.

        Returns:
            False if the source is another server, or the load's next event another one: it has to begin again.
        """
        self._forget(last_finished)
        if server_uuid != self._server_uuid or (self._sent and self._sent[0][0] != last_finished + 1):
            return False
        self._waiting.extendleft(batch for _, batch in reversed(self._sent))
        self._sent.clear()
        return True

    def close(self) -> None:
        """End the source's sessions. May be repeated."""
        self._load.close()

    def _forget(self, committed: Seqno) -> None:
        while self._sent and self._sent[0][0] <= committed:
            self._sent.popleft()
