"""XA transactions of the source: prepared at one position of the log, committed or rolled back at another.

A prepared transaction is no event yet: it becomes visible when a session commits it, perhaps days later. Until then its
batches are stored (`connector.log.transaction.pending`).
"""

from __future__ import annotations

from dataclasses import dataclass

from connector.log.transaction.batch import PositionAdvance, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.position import SourcePosition

XID = "xid"
"""The metadata key of a transaction's xid."""
PREPARED = "xa_prepared"
"""The metadata key of the GTID of its XA PREPARE, or of the position if it has none; absent in a one-phase commit."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A batch of an XA transaction. The batches of one transaction come in order, with nothing else between them.

    A transaction that is committed in one phase and fits one batch is an ordinary `TransactionBatch`.

    Args:
        xid: the transaction's XID as MySQL writes it: `X'6162',X'',1`.
        batch: the first has `begin`, the last `ending`; a transaction without captured changes is one empty batch.
        one_phase: set with the last batch of a transaction that is committed in one phase.
    """

    xid: str
    batch: TransactionBatch
    one_phase: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """XA COMMIT or XA ROLLBACK of a prepared transaction. In the source's log it has its own GTID.

    Args:
        xid: the XID of the prepared transaction.
        begin: the facts of the commit or rollback itself.
        ending: its outcome is COMMIT or ROLLBACK.
    """

    xid: str
    begin: TransactionStart
    ending: TransactionEnd


Logged = TransactionBatch | PositionAdvance | Prepared | Decided
"""A transaction, or a part of one, as a reader of the source's log returns it."""


def end_of(item: Logged) -> SourcePosition | None:
    """The position after this item, if a transaction or a position advance ends with it; None within a transaction."""
    match item:
        case PositionAdvance():
            return item.end
        case Prepared(batch=TransactionBatch(ending=ending)) | TransactionBatch(ending=ending) | Decided(ending=ending):
            return ending.end if ending is not None else None
