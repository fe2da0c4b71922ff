from collections.abc import Callable

from connector.errors import CorruptBinlog, Unsupported
from connector.log.transaction.batch import Rows
from connector.log.transaction.layout import TableLayout

class UnknownRow(LookupError):
    key: bytes
    differs: bool
    def __init__(self, key: bytes, differs: bool = False) -> None: ...

class UnknownDefault(LookupError):
    column: int
    def __init__(self, column: int) -> None: ...

class KeyMissing(ValueError): ...

class DifferencesFailed(Exception):
    column: int
    cause: CorruptBinlog | Unsupported
    def __init__(self, column: int, cause: CorruptBinlog | Unsupported) -> None: ...

class RowCompleter:
    layout: TableLayout
    prefix: bytes
    definition: int
    defaults: list[bytes | None]
    lost: bool
    def __init__(self, layout: TableLayout, prefix: bytes, definition: int, defaults: list[bytes | None]) -> None: ...
    def keys(self, rows: Rows) -> list[bytes]: ...
    def complete(
        self,
        rows: Rows,
        seqno: int,
        open: dict[bytes, bytes | None],
        known: dict[bytes, bytes | None],
        convert: Callable[[bytes], bytes | None],
        unknown: int,
        brought: bool,
    ) -> tuple[list[Rows], int]: ...
