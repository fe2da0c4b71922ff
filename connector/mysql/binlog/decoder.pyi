from collections.abc import Callable

from connector.errors import ConnectorError
from connector.log.gtid.source_gtids import HasGtids
from connector.log.transaction.definition import Item
from connector.log.transaction.position import SourcePosition
from connector.mysql.binlog.events.capture_filter import CaptureFilter
from connector.mysql.binlog.events.column_names import ColumnNameResolver
from connector.mysql.binlog.frames import Frames

class Decoder:
    file: str
    created: dict[str, int]
    leave_out: Callable[[ConnectorError, int, int], None] | None
    in_use: bool
    def __init__(
        self,
        frames: Frames,
        filters: CaptureFilter,
        resolver: ColumnNameResolver,
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
