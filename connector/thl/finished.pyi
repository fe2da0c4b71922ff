from dataclasses import dataclass

from connector.thl.place import SourcePosition
from connector.thl.words import Epoch, Seqno

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
