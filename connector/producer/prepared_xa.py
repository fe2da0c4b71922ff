"""Stores XA transactions between XA PREPARE and XA COMMIT or XA ROLLBACK.

Their batches are written to a topic of their own as they are read; the closing record is written with the position
after the PREPARE (`log.transaction.pending`). At XA COMMIT they become an event with the next seqno. A small
transaction is also kept in memory until then, so that it need not be read back. A large one is read back from Kafka
batch by batch, from the topic's end before its first batch. A transaction of several batches that is committed in one
phase is stored in the same way, because only its last event shows that it is committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from zlib import crc32

from connector import metrics
from connector.config.model import Config
from connector.errors import LogDamaged, Unsupported
from connector.kafka.log_reader import LogReader
from connector.kafka.prepared_records import PreparedState, attempt_tombstones, closing_record, message_key, tombstones
from connector.log.ids import Epoch, Outcome
from connector.log.rules import NEW_LOG
from connector.log.transaction.batch import PositionAdvance, Rows, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.event_id import EventId
from connector.log.transaction.pending import Pending, Stored
from connector.log.transaction.position import Digest, Finished
from connector.log.transaction.xa import PREPARED, Decided, Prepared
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.stored import BatchDecoder, Changes, messages
from connector.producer.publish.publisher import Publisher
from connector.producer.publish.queue import Work

IN_MEMORY: Final = 32 << 20  # maximum bytes of all prepared transactions in memory
MESSAGE: Final = 512 << 10  # target size of a message of the topic, in bytes
OVERHEAD: Final = 1024  # maximum bytes of Kafka's record batch and the key
WORK_MESSAGES: Final = 1000  # maximum number of tombstones in one item of the publisher's queue


@dataclass(slots=True)
class _Attempt:
    """One reading of a transaction: being read, or pending.

    Args:
        name: the name of the attempt, unique in the topic.
        begin: the start of the transaction.
        start: an offset of the topic before its first message.
        held: the changes of its batches; None: only Kafka has them.
    """

    name: str
    begin: TransactionStart
    start: int
    held: list[Changes] | None
    size: int = 0
    batches: int = 0
    messages: int = 0


class PreparedTransactions:
    """The prepared transactions of a producer that is online.

    Args:
        config: the service and sizes.
        encoder: numbers the events.
        publisher: publishes the events.
        epoch: the producer's epoch, a part of the attempts' names.
        state: the content of the topic when the producer went online.
    """

    def __init__(
        self, config: Config, encoder: Encoder, publisher: Publisher, epoch: Epoch, state: PreparedState
    ) -> None:
        self._config = config
        self._encoder = encoder
        self._publisher = publisher
        self._epoch = epoch
        self._pending = state.pending
        self._starts = dict(state.starts)
        self._strays = list(state.strays)
        self._end = state.end  # a lower bound of the topic's end offset
        self._attempts = 0
        self._open: _Attempt | None = None  # the transaction that is being read
        self._held: dict[str, list[Changes]] = {}  # by the attempt's name
        self._held_bytes: dict[str, int] = {}
        self._size = max(2, min(MESSAGE, config.kafka.max_message_bytes - OVERHEAD))
        self._update_metrics()

    def accept(self, item: Prepared | Decided) -> Iterator[Work]:
        """Accept the next item of an XA transaction.

        Returns:
            Work for the publisher, in order; the caller queues each before it requests the next.

        Raises:
            Unsupported: an XA COMMIT of a transaction that was prepared before the log began.
            LogDamaged: the topic has lost batches.
        """
        if isinstance(item, Decided):
            yield from self._decided(item)
        else:
            yield from self._prepared(item)
        self._update_metrics()

    def _prepared(self, item: Prepared) -> Iterator[Work]:
        batch = item.batch
        if batch.begin is not None:
            yield from self._void_strays()
            self._open = self._attempt(batch, batch.begin)
        attempt = self._open
        if attempt is None:
            raise LogDamaged("a batch of a prepared transaction comes before its start", xid=item.xid)
        nothing = batch.ending is not None and not attempt.batches and not batch.changes
        work: Work = [] if nothing else [*self._store(attempt, batch.changes)]
        if batch.ending is None:
            yield work
            return
        self._open = None
        pending = Pending(
            xid=item.xid,
            attempt=attempt.name,
            batches=attempt.batches,
            messages=attempt.messages,
            gtid=attempt.begin.gtid,
            start=attempt.begin.start,
            time=batch.ending.commit_time,
            kind=attempt.begin.kind,
        )
        if attempt.held is None:
            self._starts[attempt.name] = attempt.start
        else:
            self._held[attempt.name], self._held_bytes[attempt.name] = attempt.held, attempt.size
        if item.one_phase:
            yield work
            yield from self._event(
                pending, attempt.begin, batch.ending, [*attempt_tombstones(attempt.name, attempt.messages)]
            )
            return
        replaced = self._pending.prepare(pending)
        if replaced is not None:
            self._forget(replaced)
            work += attempt_tombstones(replaced.attempt, replaced.messages)
        yield [
            *work,
            closing_record(pending, self._pending.kept),
            PositionAdvance(batch.ending.end, attempt.begin.gtid),
        ]

    def _decided(self, item: Decided) -> Iterator[Work]:
        pending = self._pending.end(item.xid)
        advance = PositionAdvance(item.ending.end, item.begin.gtid)
        if pending is None:
            if item.ending.outcome is Outcome.COMMIT:
                raise Unsupported(
                    "an XA transaction is committed that was prepared before the log began, so its changes are unknown",
                    hint=f"{NEW_LOG}, when XA RECOVER lists nothing",
                    xid=item.xid,
                    gtid=item.begin.gtid,
                    end=item.ending.end,
                )
            yield [advance]
            return
        removed = tombstones(pending, self._pending.kept)
        if item.ending.outcome is not Outcome.COMMIT or not pending.batches:
            self._forget(pending)
            yield [*removed, advance]
            return
        start, prepared = item.begin, pending.gtid or str(pending.start)
        begin = TransactionStart(
            server_id=start.server_id,
            thread_id=start.thread_id,
            gtid=start.gtid,
            last_committed=start.last_committed,
            sequence_number=start.sequence_number,
            start=start.start,
            kind=pending.kind,
            metadata={**start.metadata, PREPARED: prepared},
        )
        yield from self._event(pending, begin, item.ending, removed)

    def _event(
        self, pending: Pending, begin: TransactionStart, ending: TransactionEnd, removed: list[Stored]
    ) -> Iterator[Work]:
        """Encode the event batch by batch; its last fragment is published with the tombstones of the stored batches."""
        for number, changes in enumerate(self._read(pending), 1):
            last = number == pending.batches
            batch = TransactionBatch(begin if number == 1 else None, changes, ending if last else None)
            yield [*self._encoder.encode(batch), *(removed if last else ())]
        self._forget(pending)

    def _read(self, pending: Pending) -> Iterator[Changes]:
        held = self._held.get(pending.attempt)
        if held is not None:
            yield from held
            return
        self._publisher.drain()  # stored batches become visible with their commit
        self._publisher.resume()
        decoder, count = BatchDecoder(), 0
        with LogReader(self._config, high_watermark=True, role="producer") as reader:
            found = reader.prepared_messages(pending.attempt, self._starts.get(pending.attempt, 0), pending.messages)
            for message in found:
                changes = decoder.feed(message)
                if changes is not None:
                    count += 1
                    yield changes
        if count != pending.batches:
            raise LogDamaged(
                "the topic has lost batches of a prepared transaction",
                xid=pending.xid,
                attempt=pending.attempt,
                batches=pending.batches,
                found=count,
            )

    def _attempt(self, batch: TransactionBatch, begin: TransactionStart) -> _Attempt:
        self._attempts += 1
        size = _size(batch.changes)
        hold = batch.ending is not None and size + sum(self._held_bytes.values()) <= IN_MEMORY
        if not hold:
            self._publisher.drain()
            with LogReader(self._config, role="producer") as reader:
                self._end = reader.prepared_end()
            self._publisher.resume()
        return _Attempt(f"{self._epoch}.{self._attempts}", begin, self._end, [] if hold else None)

    def _store(self, attempt: _Attempt, changes: Changes) -> list[Stored]:
        made = messages(changes, self._size)
        work = [
            Stored(message_key(attempt.name, number), message) for number, message in enumerate(made, attempt.messages)
        ]
        attempt.messages += len(made)
        attempt.batches += 1
        if attempt.held is not None:
            attempt.held.append(changes)
            attempt.size += _size(changes)
        return work

    def _void_strays(self) -> Iterator[Work]:
        """Void the messages of unfinished attempts: an earlier producer's, and this one's."""
        strays, self._strays = [Stored(key, None) for key in self._strays], []
        if self._open is not None:
            strays += attempt_tombstones(self._open.name, self._open.messages)
            self._open = None
        for start in range(0, len(strays), WORK_MESSAGES):
            yield [*strays[start : start + WORK_MESSAGES]]

    def _forget(self, pending: Pending) -> None:
        self._held.pop(pending.attempt, None)
        self._held_bytes.pop(pending.attempt, None)
        self._starts.pop(pending.attempt, None)

    def _update_metrics(self) -> None:
        service = self._config.service
        metrics.prepared_transactions.labels(service).set(self._pending.kept.count)
        metrics.prepared_since.labels(service).set((self._pending.oldest or 0) / 1e6)


def redone(finished: Finished, decided: Decided) -> Finished | None:
    """Return the log's last transaction for the comparison, if it is an XA COMMIT.

    The source's log does not have its changes there, and they are no longer stored, so the xid identifies it.

    Args:
        finished: the transaction in the log.
        decided: the decision in the source's log, under its GTID or at its position.

    Returns:
        None if the source has rolled it back.
    """
    if decided.ending.outcome is not Outcome.COMMIT:
        return None
    end, check = decided.ending.end, crc32(decided.xid.encode())
    return Finished(
        seqno=finished.seqno,
        epoch=finished.epoch,
        event_id=str(EventId(end.file, end.offset, decided.begin.thread_id)),
        gtid=decided.begin.gtid,
        digest=finished.digest if finished.digest.crc32 == check else Digest(0, 0, check),
        start=decided.begin.start,
    )


def _size(changes: Changes) -> int:
    return sum(len(change.data if isinstance(change, Rows) else change.sql) for change in changes)
