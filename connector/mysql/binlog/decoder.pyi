from connector.log.gtid.source_gtids import HasGtids
from connector.log.transaction.definition import Item
from connector.log.transaction.position import SourcePosition
from connector.mysql.binlog.events.capture_filter import CaptureFilter
from connector.mysql.binlog.frames import Frames
from connector.mysql.schema_history.column_names import ColumnNameResolver

class Decoder:
    file: str
    created: dict[str, int]
    def __init__(
        self,
        frames: Frames,
        filters: CaptureFilter,
        naming: ColumnNameResolver,
        batch_bytes: int,
        service: str,
        file: str = "",
        known: HasGtids | None = None,
    ) -> None: ...
    @property
    def position(self) -> SourcePosition: ...
    @property
    def inside(self) -> bool: ...
    def decode(self) -> list[Item]: ...
