from dataclasses import dataclass

from connector.log.ids import Seqno
from connector.log.transaction.finished import Finished
from connector.log.transaction.source_position import SourcePosition

@dataclass
class Fragment:
    partition: int
    key: bytes
    value: bytes
    seqno: Seqno
    fragno: int
    finished: Finished | None
    resume: SourcePosition | None
    barrier: bool
    commit_time: int | None
