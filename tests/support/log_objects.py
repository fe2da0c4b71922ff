"""Short constructors of the values of these tests."""

from __future__ import annotations

from connector.log.epochs.control import ControlState, EpochRecord, LogRecord, PartitionMap
from connector.log.format.header import FragmentHeader
from connector.log.ids import NO_SEQNO, UNKNOWN_SHARD, Epoch, Kind, LogId, Outcome, Seqno, ShardId
from connector.log.transaction.position import Digest, Finished, PositionRecord, SourcePosition

LOG = LogId("a" * 32)
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def header(
    seqno: int,
    fragno: int = 0,
    *,
    last: bool = True,
    epoch: int = 1,
    prev: int | None = None,
    barrier: int = -1,
    shard: str = "shop",
    kind: Kind = Kind.TRANSACTION,
    rows: int = 1,
    metadata: dict[str, str] | None = None,
) -> FragmentHeader:
    return FragmentHeader(
        seqno=Seqno(seqno),
        fragno=fragno,
        last_frag=last,
        epoch=Epoch(epoch),
        kind=kind,
        shard=ShardId(shard),
        prev_seqno=Seqno(seqno - 1 if prev is None else prev),
        last_barrier=Seqno(barrier),
        rows=rows,
        source_id="db1:3306",
        server_id=1,
        thread_id=7,
        gtid=f"{UUID}:{seqno + 1}",
        last_committed=0,
        sequence_number=0,
        metadata=metadata or {},
        event_id=f"mysql-bin.000001:{100 * (seqno + 1):016d};7" if last else None,
        commit_time=0 if last else None,
        outcome=Outcome.COMMIT if last else None,
    )


def marker(epoch: int, first: int, *, prev: int = -1, barrier: int = -1, log_id: str = LOG) -> FragmentHeader:
    return header(
        first,
        epoch=epoch,
        prev=prev,
        barrier=barrier,
        shard=UNKNOWN_SHARD,
        kind=Kind.EPOCH,
        rows=0,
        metadata={"log_id": log_id, "last_finished": str(first - 1)},
    )


def epochs(*firsts: int) -> tuple[EpochRecord, ...]:
    return tuple(
        EpochRecord(
            epoch=Epoch(number),
            first_seqno=Seqno(first),
            source_id="db1:3306",
            server_uuid=UUID,
            started=0,
            reason="online",
        )
        for number, first in enumerate(firsts, 1)
    )


def control(*firsts: int, count: int = 1, log_id: LogId = LOG) -> ControlState:
    return ControlState(LogRecord(log_id, 0), PartitionMap(1, count), epochs(*firsts))


def finished(seqno: int, epoch: int = 1, *, crc: int = 0, file: str = "mysql-bin.000001") -> Finished:
    return Finished(
        seqno=Seqno(seqno),
        epoch=Epoch(epoch),
        event_id=f"{file}:{100 * (seqno + 1):016d};7",
        gtid=f"{UUID}:{seqno + 1}",
        digest=Digest(1, 10, crc),
        start=SourcePosition(file, 100 * seqno),
    )


def position(seqno: int = -1, epoch: int = 1, *, tails: dict[int, int] | None = None) -> PositionRecord:
    done = {p: Seqno(s) for p, s in (tails if tails is not None else {0: seqno}).items()}
    return PositionRecord(
        finished=None if seqno == NO_SEQNO else finished(seqno, epoch),
        resume=SourcePosition("mysql-bin.000001", 100 * (seqno + 1)),
        gtid_set="" if seqno == NO_SEQNO else f"{UUID}:1-{seqno + 1}",
        open=None,
        tails=done,
    )
