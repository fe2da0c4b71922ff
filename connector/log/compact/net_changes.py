"""Net changes per key, in a form that every target turns into its own bulk format."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from connector.log.ids import Epoch, Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout, TableName


@dataclass(slots=True)
class Images:
    """Full row images, each the Avro values of all the layout's columns in order (no array framing).

    Args:
        data: concatenated images; a value is the union null/long/double/string/bytes of schemas/fragment.avsc.
        ends: `array('Q')`, end offset of each image in `data`.
    """

    data: bytes | bytearray
    ends: array[int]

    def __len__(self) -> int:
        return len(self.ends)


@dataclass(slots=True)
class Partial:
    """Rows of which the log tells only some columns (binlog_row_image): the others are known to the target alone.

    An image of these is the values of all the layout's columns, NULL where one is absent; then, as bytes, a bit per
    column (least significant first): whether it is there; then, but for `added`, the values of the key, in the key's
    order, under which the row stands on the target before anything of these net operations is done.

    Args:
        changed: rows that keep their key: the columns that are there get these values.
        moved: rows that get another key, and these values; what is absent comes along. Old keys of some may be new
            keys of others.
        added: new rows, whose absent columns have their defaults.
    """

    changed: Images
    moved: Images
    added: Images

    def __len__(self) -> int:
        return len(self.changed) + len(self.moved) + len(self.added)


@dataclass(slots=True)
class NetChanges:
    """The net changes of one table after a range of events was compacted by key.

    With a key: `inserts` are new keys, `updates` existing keys with their full new images, `deletes` existing keys
    (before images). The three are disjoint by key; keys are compared by the bytes of the image. A changed key
    is a delete and an insert. Each of them is about in the order of its key, so that a target's index is gone through
    once from left to right; nothing but speed may depend on that.
    Without a key: `deletes` and `inserts` are full images, a multiset difference; `updates` is empty.

    Targets do deletes first, then updates, then inserts, and check the number of rows of each.

    With `partial` they read the absent columns of moved rows before they do anything; the old keys of these are
    deletes more, the rows inserts; changed rows are updates. A key may then be in deletes and be added.

    Where the target has columns of the transaction, the layout has them behind the table's own, and each image, also a
    partial one, has their values; in those of `deletes` they mean nothing.

    With `again` (see `once_more`) the rows of `deletes` may be there or not: their number is not checked.
    """

    layout: TableLayout
    inserts: Images
    updates: Images
    deletes: Images
    changes: int  # row changes of the log that this stands for
    partial: Partial | None = None
    again: bool = False

    def __len__(self) -> int:
        """The number of rows of the target that this touches."""
        return (
            len(self.inserts)
            + len(self.updates)
            + len(self.deletes)
            + (0 if self.partial is None else len(self.partial))
        )


def once_more(net: NetChanges) -> NetChanges:
    """The same for a target that may have done it before, and what came later: whatever stands there makes room.

    Only of whole images of a table with a key: then the rows that it touches are afterwards what the log says.
    """
    if net.partial is not None or not net.layout.key:
        raise ValueError(f"{net.layout.name} cannot be written again")
    after = _joined(net.updates, net.inserts)
    nothing = Images(b"", array("Q"))
    return NetChanges(net.layout, after, nothing, _joined(net.deletes, after), net.changes, again=True)


def _joined(first: Images, second: Images) -> Images:
    shift = len(first.data)
    return Images(bytes(first.data) + bytes(second.data), first.ends + array("Q", (shift + end for end in second.ends)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedEvent:
    """One event that a commit on the target covers."""

    seqno: Seqno
    epoch: Epoch
    event_id: str
    commit_time: int  # µs since 1970 UTC
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An event that is not applied because somebody said so.

    Args:
        by: user@host.
        reason: why.
        tables: what it would have changed, so that these are no longer known to be equal; `ANY` for a table or schema
            that cannot be told.
        by_hand: whether somebody has done on the target what it would have done.
    """

    seqno: Seqno
    epoch: Epoch
    event_id: str
    by: str
    reason: str
    tables: tuple[TableName, ...]
    by_hand: bool = False


ANY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ddl:
    """A DDL event for a target."""

    seqno: Seqno
    statements: Sequence[Statement]
    commit_time: int  # µs since 1970 UTC: what CURRENT_TIMESTAMP gave on the source
