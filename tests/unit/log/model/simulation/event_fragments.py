"""The event that a producer makes of a transaction, by its settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from connector.log.epochs.control import PartitionMap
from connector.log.format.header import FragmentHeader
from connector.log.format.shard import partition_of
from connector.log.format.shard_rule import BY_SCHEMA
from connector.log.ids import UNKNOWN_SHARD, Epoch, Kind, LogId, Outcome, Seqno, ShardId
from connector.log.transaction.event_id import EventId
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import Digest, Finished, PositionRecord
from connector.log.transaction.xa import PREPARED as XA_PREPARED
from connector.log.writing.fragment import Fragment
from tests.unit.log.model.simulation.source import Sourced


@dataclass(frozen=True)
class Settings:
    """The configuration of a producer, and what its operator wants.

    Args:
        log_id: the random identity that it would give to a new log.
        every: a Kafka transaction ends after this many fragments.
        shard_limit: an event of more fragments is #UNKNOWN: its shard is not known in time.
        filters: with another number it makes another event of the same transaction.
        shards_by: the rule of shards.
        accepts: that the source lacks what the log has.
    """

    log_id: LogId
    every: int
    shard_limit: int
    filters: int = 0
    shards_by: str = BY_SCHEMA
    accepts: bool = False


class EventFragments:
    """Makes the fragments of events.

    Args:
        epoch: in which they are written.
        partitions: the partition map of the log.
        settings: of the producer.
    """

    begins_with_a_barrier = True  # a version of the partition map

    def __init__(self, epoch: Epoch, partitions: PartitionMap, settings: Settings) -> None:
        self._epoch, self._partitions, self._settings = epoch, partitions, settings

    def of(
        self, transaction: Sourced, pieces: Sequence[Any], position: PositionRecord, seqno: Seqno
    ) -> Iterator[tuple[Fragment, tuple[FragmentHeader, Any]]]:
        """Return the fragments of an event.

        Args:
            transaction: which becomes the event.
            pieces: its content, a fragment each.
            position: before the event.
            seqno: of the event.
        """
        shard = self._shard_of(transaction, seqno)
        partition = partition_of(shard, len(position.tails))
        finished = finished_of(transaction, seqno, self._epoch, self._settings)
        for fragno, piece in enumerate(pieces):
            last = fragno == transaction.size - 1
            header = FragmentHeader(
                seqno=seqno,
                fragno=fragno,
                last_frag=last,
                epoch=self._epoch,
                kind=Kind.TRANSACTION,
                shard=shard,
                prev_seqno=position.tails[partition],
                last_barrier=position.last_barrier,
                rows=fragno + 1,
                source_id="db1:3306",
                server_id=1,
                thread_id=0,
                gtid=transaction.gtid,
                last_committed=0,
                sequence_number=0,
                metadata={XA_PREPARED: transaction.of.gtid} if transaction.of else {},
                event_id=finished.event_id if last else None,
                commit_time=0 if last else None,
                outcome=Outcome.COMMIT if last else None,
            )
            fragment = Fragment(
                partition=partition,
                key=shard.encode(),
                value=b"",
                seqno=seqno,
                fragno=fragno,
                finished=finished if last else None,
                resume=transaction.end if last else None,
                barrier=header.barrier,
                commit_time=None,
            )
            yield fragment, (header, piece)

    def _shard_of(self, transaction: Sourced, seqno: Seqno) -> ShardId:
        partitions = self._partitions
        if transaction.schema == UNKNOWN_SHARD or transaction.size > self._settings.shard_limit:
            return UNKNOWN_SHARD
        if seqno == partitions.since and self.begins_with_a_barrier:
            return UNKNOWN_SHARD
        return partitions.rule.of(TableName(transaction.schema, f"t{transaction.content}"))


def finished_of(transaction: Sourced, seqno: Seqno, epoch: Epoch, settings: Settings) -> Finished:
    """What a position says of an event."""
    return Finished(
        seqno=seqno,
        epoch=epoch,
        event_id=str(EventId(transaction.end.file, transaction.end.offset, 0)),
        gtid=transaction.gtid,
        digest=Digest(transaction.digest.rows + settings.filters, transaction.digest.size, transaction.digest.crc32),
        start=transaction.start,
    )
