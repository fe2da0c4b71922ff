from dataclasses import dataclass

from connector.thl.finished import Finished
from connector.thl.place import SourcePosition
from connector.thl.words import Seqno

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
