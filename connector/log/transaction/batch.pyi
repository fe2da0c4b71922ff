from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from connector.log.ids import Action, Kind, Outcome
from connector.log.transaction.layout import TableLayout
from connector.log.transaction.source_position import SourcePosition

class Rows:
    def __init__(
        self,
        layout: TableLayout,
        action: Action,
        data: bytes | bytearray,
        ends: array[int],
        before: bytes = b"",
        after: bytes = b"",
        query: str | None = None,
    ) -> None: ...
    @property
    def layout(self) -> TableLayout: ...
    @property
    def action(self) -> Action: ...
    @property
    def data(self) -> bytes | bytearray: ...
    @property
    def ends(self) -> array[int]: ...
    @property
    def count(self) -> int: ...
    @property
    def before(self) -> bytes: ...
    @property
    def after(self) -> bytes: ...
    @property
    def query(self) -> str | None: ...
    logged: bytes | bytearray | None

@dataclass(frozen=True)
class Statement:
    schema: str
    sql: str
    options: Mapping[str, str] = field(default_factory=dict)

@dataclass(frozen=True)
class TransactionStart:
    server_id: int
    thread_id: int
    gtid: str | None
    last_committed: int
    sequence_number: int
    start: SourcePosition
    kind: Kind
    metadata: Mapping[str, str] = field(default_factory=dict)

@dataclass(frozen=True)
class TransactionEnd:
    end: SourcePosition
    commit_time: int
    outcome: Outcome

@dataclass
class TransactionBatch:
    begin: TransactionStart | None
    changes: list[Rows | Statement]
    ending: TransactionEnd | None

@dataclass(frozen=True)
class PositionAdvance:
    end: SourcePosition
    gtid: str | None
