"""What `reassemble` gives to `write`: net operations per key, in a form every target turns into its own bulk format."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from connector.thl.layout import TableLayout
from connector.thl.piece import Statement
from connector.thl.words import Epoch, Seqno


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
class NetRows:
    """What remains to be done to one table after a run of events was collapsed by key.

    With a key: `inserts` are new keys, `updates` existing keys with their full new images, `deletes` existing keys
    (before images). The three are disjoint by key; keys are compared by the bytes of the image. A changed key
    is a delete and an insert. Each of them is about in the order of its key, so that a target's index is gone through
    once from left to right; nothing but speed may depend on that.
    Without a key: `deletes` and `inserts` are full images, a multiset difference; `updates` is empty.

    Targets do deletes first, then updates, then inserts, and check the number of rows of each.
    """

    layout: TableLayout
    inserts: Images
    updates: Images
    deletes: Images
    changes: int  # row changes of the log that this stands for


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedEvent:
    """One event that a commit on the target covers."""

    seqno: Seqno
    epoch: Epoch
    event_id: str
    commit_time: int  # µs since 1970 UTC
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ddl:
    """A DDL event for a target."""

    seqno: Seqno
    statements: Sequence[Statement]
    commit_time: int  # µs since 1970 UTC: what CURRENT_TIMESTAMP gave on the source
