from connector.capture.frames import Frames
from connector.capture.naming import Naming
from connector.capture.query import Wanted
from connector.thl.definition import Item
from connector.thl.gtids import HasGtids
from connector.thl.position import SourcePosition

class Decoder:
    file: str
    created: dict[str, int]
    def __init__(
        self,
        frames: Frames,
        filters: Wanted,
        naming: Naming,
        piece_bytes: int,
        service: str,
        file: str = "",
        known: HasGtids | None = None,
    ) -> None: ...
    @property
    def position(self) -> SourcePosition: ...
    @property
    def inside(self) -> bool: ...
    def decode(self) -> list[Item]: ...
