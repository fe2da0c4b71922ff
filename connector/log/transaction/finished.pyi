from dataclasses import dataclass

from connector.log.ids import Epoch, Seqno
from connector.log.transaction.source_position import SourcePosition

@dataclass(frozen=True)
class Digest:
    rows: int
    size: int
    crc32: int

@dataclass(frozen=True, kw_only=True)
class Finished:
    seqno: Seqno
    epoch: Epoch
    event_id: str
    gtid: str | None
    digest: Digest
    start: SourcePosition
