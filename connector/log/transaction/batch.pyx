"""A transaction of the source in batches of bounded size, from its reader to the encoder.

A small transaction is one batch with `begin` and `ending`. A large one is a first batch with `begin`, any number of
middle ones, and a last one with `ending`. Batches of two transactions never mix. An empty batch (`begin` and `ending`
both None and no changes) never occurs; a `PositionAdvance` stands for a part of the log that is not captured.

Compiled because every transaction makes five of these: a Python dataclass takes a microsecond, half of what the
transaction's rows take. Compiled code makes them by `__new__` and sets the fields. None is ever part of a reference
cycle, so the garbage collector, which a few hundred of them would start, does not track them (`no_gc`).
"""

cimport cython
from cython.dataclasses cimport dataclass, field
from libc.stdint cimport int64_t

from connector.log.transaction.source_position cimport SourcePosition

from array import array


@cython.final
@cython.no_gc
cdef class Rows:
    """Rows of one table and action, already in Avro.

    Args:
        layout: the table as the TABLE_MAP event described it; the same object while nothing changed.
        action: INSERT (after images), DELETE (before images) or UPDATE (both).
        data: concatenated Avro `Row` records (schemas/fragment.avsc): before, after.
        ends: `array('Q')` of each record's end in `data`, ascending; the last equals `len(data)`.
        before, after: a bit per column (least significant first): whether it is in the images. Empty: all are.
        query: the beginning of the text of the rows' statement; None where the source does not log it.

    Attributes:
        logged: of completed rows the records as the source logged them, by which it is recognised; None: `data`.
    """

    def __init__(self, layout, action, data, ends, before=b"", after=b"", query=None):
        self.layout = layout
        self.action = action
        self.data = data
        self.before = before
        self.after = after
        self.query = query
        self.count = len(ends)
        self.marks = bytes(ends)

    @property
    def ends(self):
        """The ends as an array, made at each call: most transactions need only the number of rows."""
        return array("Q", self.marks)

    def __eq__(self, other):
        if not isinstance(other, Rows):
            return NotImplemented
        return self._fields() == other._fields()

    __hash__ = None

    def __repr__(self):
        return f"Rows{self._fields()!r}"

    def _fields(self):
        return self.layout, self.action, self.data, self.ends, self.before, self.after, self.query


@cython.final
@dataclass(frozen=True)
cdef class Statement:
    """A statement of the source, e.g. a DDL.

    Args:
        schema: the session's default schema, "" if none.
        sql: the text, decoded with the session's character set.
        options: session state it was executed under: `sql_mode`, `time_zone`, `character_set_client`, `timestamp` …
    """

    schema: str
    sql: str
    options: object = field(default_factory=dict)


@cython.final
@cython.no_gc
@dataclass(frozen=True)
cdef class TransactionStart:
    """The facts of a transaction that are known when it begins.

    Args:
        start: the position of its first event (its GTID event, if it has one).
    """

    server_id: int64_t
    thread_id: int64_t
    gtid: str | None
    last_committed: int64_t
    sequence_number: int64_t
    start: SourcePosition
    kind: object
    metadata: object = field(default_factory=dict)


@cython.final
@cython.no_gc
@dataclass(frozen=True)
cdef class TransactionEnd:
    """The facts of a transaction that are known only when it has ended.

    Args:
        end: the position after its last event.
        commit_time: µs since 1970 UTC: of the commit where the source logs it (8.0+), else of the last event.
        outcome: COMMIT, or ROLLBACK for changes to non-transactional tables of a rolled back transaction.
    """

    end: SourcePosition
    commit_time: int64_t
    outcome: object


@cython.final
@cython.no_gc
@dataclass
cdef class TransactionBatch:
    """A batch of one transaction's changes, in order."""

    begin: TransactionStart | None
    changes: list
    ending: TransactionEnd | None


@cython.final
@cython.no_gc
@dataclass(frozen=True)
cdef class PositionAdvance:
    """A part of the source's log that is not captured: filtered, empty, ignorable. Only between transactions.

    Args:
        end: the position after it.
        gtid: its GTID, if it has one: it counts as seen.
    """

    end: SourcePosition
    gtid: str | None
