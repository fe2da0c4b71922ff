from collections.abc import Callable

from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.compact.net_changes import NetChanges
from connector.log.compact.scan import Messages
from connector.log.format.message import Message
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout

class Compactor:
    def __init__(
        self,
        topic: str,
        columns: MetadataColumns | None = None,
        *,
        known: bool = True,
        history: HistoryTables | None = None,
    ) -> None: ...
    @property
    def rows(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def table_count(self) -> int: ...
    def add(self, message: Message, before: int = 0, execute: Callable[[Statement], None] | None = None) -> int: ...
    def add_range(self, messages: Messages, first: int, end: int, rows: int, size: int) -> int: ...
    def drain(self) -> list[NetChanges]: ...
    def layouts_seen(self) -> list[tuple[TableLayout, bool]]: ...
