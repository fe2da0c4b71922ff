from connector.encode.numbering import Limits, Numbering, Sharding
from connector.encode.schema import Framing
from connector.thl.fragment import Fragment
from connector.thl.header import FragmentHeader
from connector.thl.piece import Piece

class Encoder:
    def __init__(
        self,
        *,
        service: str,
        source_id: str,
        partitions: int,
        limits: Limits,
        framing: Framing = ...,
        sharding: Sharding | None = None,
    ) -> None: ...
    @property
    def open(self) -> bool: ...
    def begin(self, numbering: Numbering) -> None: ...
    def take(self, piece: Piece) -> list[Fragment]: ...
    def marker(self, partition: int, header: FragmentHeader) -> Fragment: ...
