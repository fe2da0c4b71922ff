from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from connector.log.format.header import FragmentHeader
from connector.log.ids import Epoch, Seqno
from connector.log.transaction.batch import TransactionBatch
from connector.log.transaction.definition import Item
from connector.log.transaction.layout import TableName
from connector.log.writing.fragment import Fragment
from connector.producer.encode.numbering import Limits, Numbering, Sharding
from connector.schema import Framing

class Completing(Protocol):
    def prefetch(self, items: Iterable[object]) -> None: ...
    def complete(self, batch: TransactionBatch, seqno: Seqno, epoch: Epoch) -> TransactionBatch: ...

class Encoder:
    completion: Completing | None
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
    @property
    def next_seqno(self) -> Seqno: ...
    def begin(self, numbering: Numbering) -> None: ...
    def encode_on(self, items: Sequence[Item], at: int, limit: int, fragments: list[Any]) -> tuple[int, int]: ...
    def encode(self, batch: TransactionBatch) -> list[Fragment]: ...
    def encode_logged(self, batch: TransactionBatch) -> list[Fragment]: ...
    def drain_counts(self) -> list[tuple[TableName, int, int]]: ...
    def marker(self, partition: int, header: FragmentHeader) -> Fragment: ...
