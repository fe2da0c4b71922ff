"""XA transactions of the source: prepared at one position of the log, committed or rolled back at another.

A prepared transaction is no event: it becomes visible when another session commits it, perhaps days later. Until then
its batches are kept (`connector.log.transaction.pending`).
"""

from __future__ import annotations

from dataclasses import dataclass

from connector.log.transaction.batch import PositionAdvance, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.position import SourcePosition

XID = "xid"
"""The metadata of a transaction under which its xid stands."""
PREPARED = "xa_prepared"
"""… and the GTID, or else the place, of its XA PREPARE, when it was committed by an XA COMMIT of its own."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A piece of an XA transaction, in order; between its first and its last nothing else comes.

    One that is committed in one phase and fits one piece comes as an ordinary `TransactionBatch`.

    Args:
        xid: as MySQL writes it: `X'6162',X'',1`.
        piece: the first has `begin`, the last `ending`; a transaction with nothing for us is one without changes.
        one_phase: told with the last piece: the transaction is committed with it.
    """

    xid: str
    piece: TransactionBatch
    one_phase: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """XA COMMIT or XA ROLLBACK of a transaction that was prepared: a transaction of its own, with a GTID of its own.

    Args:
        xid: whose.
        begin: what is known of the commit.
        ending: COMMIT or ROLLBACK.
    """

    xid: str
    begin: TransactionStart
    ending: TransactionEnd


Logged = TransactionBatch | PositionAdvance | Prepared | Decided
"""What a source's log holds of transactions, in its order."""


def end_of(item: Logged) -> SourcePosition | None:
    """The place where a transaction ends with this item, or the source had gone past; None within a transaction."""
    match item:
        case PositionAdvance():
            return item.end
        case Prepared(piece=TransactionBatch(ending=ending)) | TransactionBatch(ending=ending) | Decided(ending=ending):
            return ending.end if ending is not None else None
