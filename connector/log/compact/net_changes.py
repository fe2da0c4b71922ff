"""Net changes per key, in a form that every target turns into its own bulk format."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from connector.log.format.header import FragmentHeader
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
    """Rows whose images in the log lack columns (binlog_row_image); only the target has the absent values.

    Such an image consists of:

    - the values of all the layout's columns, NULL where one is absent,
    - as bytes, a bit for each column (least significant first): 1 if it is present,
    - except in `added`, the values of the key, in the key's order, that the row has on the target before these changes.

    Args:
        changed: rows that keep their key. Their present columns get these values.
        moved: rows that get another key and these values, and keep the values of absent columns. Old keys of some may
            be new keys of others.
        added: new rows. Their absent columns get the defaults.
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
    is a delete and an insert. Each is roughly in the order of its keys, so that a target walks its index once; only
    speed may depend on that.

    Without a key: `deletes` and `inserts` are full images, a multiset difference; `updates` is empty.

    Targets apply deletes first, then updates, then inserts, and check the number of rows of each.

    With `partial` a target first reads the absent columns of moved rows. Their old keys are then further deletes and
    the rows further inserts; changed rows are updates. A key may be both deleted and added.

    Where the target has metadata columns, the layout has them after the table's own, and each image, partial ones too,
    has their values; in `deletes` these have no meaning.

    With `again` (see `once_more`) the rows of `deletes` may exist or not: their number is not checked. With `partial`
    the same is true of changed rows, but not of moved ones: only the target has their absent columns.

    With `replaces` (see `replacing`) the rows of `inserts` may exist, too: the new images replace them.

    With `history_of` they are rows of that table's history (`connector.log.compact.history`): inserts alone, one for
    each change, not compacted. The layout is the history's, without metadata columns.
    """

    layout: TableLayout
    inserts: Images
    updates: Images
    deletes: Images
    changes: int  # the number of row changes in the log that were compacted
    partial: Partial | None = None
    again: bool = False
    replaces: bool = False
    history_of: TableName | None = None

    @property
    def source_table(self) -> TableName:
        """The table of the source whose changes these are."""
        return self.layout.name if self.history_of is None else self.history_of

    def __len__(self) -> int:
        """The number of rows of the target that change."""
        return (
            len(self.inserts)
            + len(self.updates)
            + len(self.deletes)
            + (0 if self.partial is None else len(self.partial))
        )


def once_more(net: NetChanges, *, partial: bool = False) -> NetChanges:
    """Return net changes for a target that may have applied them and later events before: they replace existing rows.

    Only for a table with a key. Afterwards the rows of these keys are as the log has them.

    Args:
        net: the changes, with whole inserts.
        partial: true: rows whose images lack columns are allowed; a changed row that is missing stays missing.
    """
    _check_repeatable(net, partial=partial)
    after = _joined(net.updates, net.inserts)
    gone = _joined(net.deletes, after)
    return NetChanges(net.layout, after, _nothing(), gone, net.changes, net.partial, again=True)


def replacing(net: NetChanges) -> NetChanges:
    """Return the same as `once_more`, for a table in which new images replace existing rows without a delete."""
    _check_repeatable(net, partial=True)
    after = _joined(net.updates, net.inserts)
    return NetChanges(net.layout, after, _nothing(), net.deletes, net.changes, net.partial, again=True, replaces=True)


def _check_repeatable(net: NetChanges, *, partial: bool) -> None:
    if not net.layout.key or (net.partial is not None and (not partial or len(net.partial.added))):
        raise ValueError(f"{net.layout.name} cannot be written again")


def _nothing() -> Images:
    return Images(b"", array("Q"))


def _joined(first: Images, second: Images) -> Images:
    if not len(first) or not len(second):
        return first if len(first) else second
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

    @classmethod
    def of(cls, header: FragmentHeader) -> AppliedEvent:
        """The event of a last fragment."""
        return cls(
            seqno=header.seqno,
            epoch=header.epoch,
            event_id=header.event_id or "",
            commit_time=header.commit_time or 0,
            rows=header.rows,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An event that an operator has skipped.

    Args:
        by: the operator, as user@host.
        reason: the operator's reason.
        tables: the tables that it would have changed, which may now differ from the source; `ANY` for a table or schema
            that is not known.
        by_hand: the operator has made the event's changes on the target.
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
    commit_time: int  # µs since 1970 UTC: the value of CURRENT_TIMESTAMP on the source
