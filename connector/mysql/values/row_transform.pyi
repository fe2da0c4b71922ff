from enum import IntEnum

from connector.log.transaction.layout import TableLayout

class Does(IntEnum):
    KEEP = 0
    DROP = 1
    FIX = 2
    HASH = 3
    CUT = 4
    ZERO_TO_NULL = 5

class RowTransform:
    layout: TableLayout
    width: int
    kept: int
    def __init__(self, layout: TableLayout, parts: list[tuple[Does, int, bytes]], key: bytes) -> None: ...
    def rows(
        self, action: int, data: bytes, ends: bytes, before: bytes, after: bytes
    ) -> tuple[bytes, bytes, bytes, bytes]: ...
