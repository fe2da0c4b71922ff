"""The versions of rows, by key and by event.

The newest version of a row lies under its key; what an event replaced lies under the event's seqno. So a lookup reads
one value, all versions at or above a seqno are dropped by reading back what these events replaced, and those below the
horizon by one deletion of a range. So are the rows of a table that has ended. A key with another first byte than `ROW`
holds something else that is versioned in the same way: definitions.

A version's seqno is that of the event which wrote it. Events are written in their order; a row that an event deletes
has no newest version, and its last one lies under that event.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from connector.errors import RecordsDamaged
from connector.log.ids import NO_EPOCH, NO_SEQNO, Epoch, LogId, Seqno
from connector.records.database import REBUILD, Database
from connector.records.stored import before, make_version, replaced, seqno_of

ROW: Final = b"r"
REPLACED: Final = b"h"
ENDED: Final = b"g"
STATE: Final = b"m"
FORMAT: Final = 2
FLUSH_BYTES: Final = 4 << 20  # of versions that are only in memory
SPILL_BYTES: Final = 16 << 20  # of the open event: a larger one is written before its end
PRUNE_EVENTS: Final = 10_000  # between two deletions of versions below the horizon
BATCH: Final = 10_000  # keys that are written at once while versions are dropped

Version = bytes | None
"""A version as `connector.records.stored` has it; None: no row."""


@dataclass(frozen=True, slots=True)
class StoreState:
    """The state of a store: its log, and the events whose versions it has.

    Args:
        log_id: the log.
        seqno: the last event whose versions it has; NO_SEQNO: none.
        epochs: (first seqno, epoch) for each epoch that wrote some of them, ascending.
        oldest: the first event whose replaced versions it has: it can go back to before this one, and no further.
    """

    log_id: LogId
    seqno: Seqno = NO_SEQNO
    epochs: tuple[tuple[Seqno, Epoch], ...] = ()
    oldest: Seqno = Seqno(0)

    def epoch_of(self, seqno: Seqno) -> Epoch:
        """The epoch whose event this was; NO_EPOCH: none that the store knows."""
        at = bisect_right(self.epochs, seqno, key=lambda one: one[0])
        return self.epochs[at - 1][1] if at else NO_EPOCH

    def after(self, seqno: Seqno, epoch: Epoch) -> StoreState:
        """The state after the next event."""
        if self.epochs and self.epochs[-1][1] == epoch:
            return replace(self, seqno=seqno)
        return replace(self, seqno=seqno, epochs=(*self.epochs, (seqno, epoch)))

    def back_to(self, seqno: Seqno) -> StoreState:
        """The state after an earlier event."""
        return replace(self, seqno=seqno, epochs=tuple(one for one in self.epochs if one[0] <= seqno))

    def to_json(self) -> bytes:
        """The state as it is stored."""
        return json.dumps(
            {
                "format": FORMAT,
                "log_id": self.log_id,
                "seqno": self.seqno,
                "epochs": self.epochs,
                "oldest": self.oldest,
            }
        ).encode()

    @classmethod
    def from_json(cls, text: bytes) -> StoreState:
        """The state that `to_json` wrote.

        Raises:
            RecordsDamaged: it is none.
        """
        try:
            stored: dict[str, Any] = json.loads(text)
            if stored["format"] != FORMAT:
                raise RecordsDamaged(
                    "the record store has the format of another version", hint=REBUILD, format=stored["format"]
                )
            return cls(
                LogId(stored["log_id"]),
                Seqno(int(stored["seqno"])),
                tuple((Seqno(int(first)), Epoch(int(epoch))) for first, epoch in stored["epochs"]),
                Seqno(int(stored["oldest"])),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise RecordsDamaged("the state of the record store cannot be read", hint=REBUILD, why=error) from error


class Versions:
    """The versions of a store, with the changes of the open event.

    Args:
        database: the database; a new one gets a state.
        log_id: the log of a new store.
        horizon: events behind the newest one whose replaced versions are kept.
        cache_bytes: bytes of rows that are kept in memory.
    """

    def __init__(self, database: Database, log_id: LogId, *, horizon: int, cache_bytes: int) -> None:
        self.open: dict[bytes, Version] = {}  # what the open event changes
        self.known: dict[bytes, Version] = {}  # newest versions; has all that the database has not
        self._database = database
        self._horizon = horizon
        self._cache_bytes = cache_bytes
        self._known_bytes = 0
        self._open_bytes = 0
        self._unwritten: list[tuple[bytes, bytes]] = []
        self._unwritten_bytes = 0
        self._dirty: set[bytes] = set()
        self._parts = 0  # of the open event that are written
        self._closed = False
        self.forgot = 0  # how often `known` was emptied
        self.count_lookups: Callable[[int, int, int], None] | None = None  # found in memory, in the database, nowhere
        stored = database.get(STATE)
        self._state = StoreState(log_id) if stored is None else StoreState.from_json(stored)
        self._seqno = self._state.seqno  # newer than the state's after events of its last epoch
        self._epoch = self._state.epoch_of(self._seqno)
        self._written = self._seqno  # the last event that the database has
        if stored is not None:
            self._undo(self.state.seqno)  # an event that was open has no end

    @property
    def state(self) -> StoreState:
        """The state after the last event."""
        if self._state.seqno != self._seqno:
            self._state = replace(self._state, seqno=self._seqno)
        return self._state

    @state.setter
    def state(self, state: StoreState) -> None:
        self._state, self._seqno = state, state.seqno
        self._epoch = state.epoch_of(state.seqno)

    def begin_at(self, seqno: Seqno, epoch: Epoch) -> None:
        """Let a store that has nothing begin with an event.

        Args:
            seqno: the event.
            epoch: the epoch of the event before it.
        """
        self.state = replace(self.state, seqno=Seqno(seqno - 1), epochs=((Seqno(seqno - 1), epoch),), oldest=seqno)

    @property
    def seqno(self) -> Seqno:
        """The last event whose versions it has; may be asked for by any thread, unlike `state`."""
        return self._seqno

    @property
    def epoch(self) -> Epoch:
        """The epoch of that event; NO_EPOCH: there is none."""
        return self._epoch

    @property
    def oldest(self) -> Seqno:
        """The first event whose replaced versions it has; may be asked for by any thread."""
        return self._state.oldest

    def fetch(self, keys: Collection[bytes]) -> None:
        """Read the newest versions of keys into `known`, in one call."""
        known, opened = self.known, self.open
        lacking = [key for key in keys if key not in known and key not in opened]
        nowhere = 0
        if lacking:
            for key, found in zip(lacking, self._database.get_many(lacking), strict=True):
                known[key] = found
                self._known_bytes += len(key)
                if found:
                    self._known_bytes += len(found)
                else:
                    nowhere += 1
        if self.count_lookups is not None:
            self.count_lookups(len(keys) - len(lacking), len(lacking) - nowhere, nowhere)

    def newest(self, key: bytes) -> Version:
        """The newest version of a key, that of the open event included."""
        if key in self.open:
            return self.open[key]
        if key not in self.known:
            self.fetch((key,))
        return self.known[key]

    def put(self, key: bytes, version: Version) -> None:
        """Give a key a version in the open event."""
        self.open[key] = version

    def end(self, prefix: bytes, seqno: Seqno) -> None:
        """Let the rows whose keys begin so, which are not read from an event on, be deleted below the horizon.

        Args:
            prefix: the first bytes of the keys.
            seqno: the event, which is open.
        """
        key = ENDED + prefix
        self.fetch((key,))
        self.put(key, make_version(seqno, 0, b""))

    def grew(self, size: int, seqno: Seqno) -> None:
        """Count bytes of the open event; a large one is written before its end, and stays open.

        Args:
            size: the bytes.
            seqno: the event.
        """
        self._open_bytes += size
        if self._open_bytes >= SPILL_BYTES:
            self._replace(seqno)
            self._write()

    def finish(self, seqno: Seqno, epoch: Epoch) -> None:
        """End the open event, which is the next one."""
        if self.open:
            self._replace(seqno)
        self._parts = 0
        if epoch == self._epoch:
            self._seqno = seqno
        else:
            self.state = self.state.after(seqno, epoch)
        if self._unwritten_bytes >= FLUSH_BYTES:
            self.flush()

    def flush(self, *, sync: bool = False) -> None:
        """Write what is only in memory. No event is open."""
        self._write(sync=sync)
        if self.state.seqno - self._horizon >= self.state.oldest + PRUNE_EVENTS:
            self._prune(Seqno(self.state.seqno - self._horizon))

    def rest(self) -> None:
        """Write what is only in memory, if there is any; an event that is open stays so."""
        if self._written != self._seqno and not self.open:
            self.flush()

    def go_back(self, seqno: Seqno) -> None:
        """Drop the open event, and all versions of later events than this one.

        Raises:
            RecordsDamaged: versions that are needed were below the horizon.
        """
        self.open.clear()
        self._open_bytes = 0
        if seqno >= self.state.seqno:
            if self._parts:
                self._write()
                self._undo(self.state.seqno)
            return
        if seqno + 1 < self.state.oldest:
            raise RecordsDamaged(
                "the record store cannot go back: the versions that it needs are beyond its horizon",
                hint=f"{REBUILD}; raise source.records.horizon",
                seqno=seqno,
                oldest=self.state.oldest,
            )
        self._write()
        self._undo(seqno)

    def rows(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The keys that begin so, with their newest versions, without what an open event has changed."""
        self._write()
        yield from self._database.items(prefix, _after(prefix))

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self._database.size()

    def verify(self) -> tuple[int, int]:
        """Read everything, so that each sum is checked; return how many versions are newest, and how many replaced."""
        newest = sum(1 for _ in self._database.items(b"", REPLACED))
        earlier = 0
        for _, part in self._database.items(REPLACED, STATE):
            try:
                earlier += len(before(part))
            except ValueError as error:
                raise RecordsDamaged("replaced versions cannot be read", hint=REBUILD, why=error) from error
        newest += sum(1 for _ in self._database.items(STATE + b"\x00", b"\xff"))
        return newest, earlier

    def close(self) -> None:
        """Write what is only in memory but the open event, and close the database. May be repeated."""
        if self._closed:
            return
        self._closed = True
        self.open.clear()
        try:
            self._write(sync=True)
        finally:
            self.known.clear()
            self._database.close()

    def discard(self) -> None:
        """Close a damaged store, and let no process open it again: what it has is not written. May be repeated."""
        if self._closed:
            return
        self._closed = True
        for held in (self.open, self.known, self._dirty):
            held.clear()
        self._unwritten.clear()
        self._database.discard()

    def _replace(self, seqno: Seqno) -> None:
        parts, grown = replaced(self.open, self.known, self._dirty)
        for part in parts:
            self._unwritten.append((_replaced_key(seqno, self._parts), part))
            self._unwritten_bytes += len(part)
            self._parts += 1
        self._known_bytes += grown
        self._unwritten_bytes += grown
        self.open.clear()
        self._open_bytes = 0

    def _write(self, *, sync: bool = False) -> None:
        known = self.known
        puts, deletes = [*self._unwritten], []
        for key in self._dirty:
            version = known[key]
            if version is None:
                deletes.append(key)
            else:
                puts.append((key, version))
        puts.append((STATE, self.state.to_json()))
        self._database.write(puts, deletes, sync=sync)
        self._unwritten, self._unwritten_bytes = [], 0
        self._dirty.clear()
        self._written = self._seqno
        if self._known_bytes > self._cache_bytes and not self.open:  # which needs what its event replaces
            known.clear()
            self._known_bytes = 0
            self.forgot += 1

    def _undo(self, seqno: Seqno) -> None:
        """Take everything back to after an event, the newest change first."""
        first = _replaced_key(Seqno(seqno + 1))
        puts: dict[bytes, Version] = {}
        gone: list[bytes] = []
        self.state = self.state.back_to(seqno)
        for key, part in _list_backwards(self._database, first):
            for changed, version in reversed(before(part)):
                puts[changed] = version
            gone.append(key)
            if len(puts) >= BATCH:
                self._restore(puts, gone)
        self._restore(puts, gone)
        self.known.clear()
        self._known_bytes = 0
        self.forgot += 1
        self._parts = 0

    def _restore(self, puts: dict[bytes, Version], gone: list[bytes]) -> None:
        """Restore versions, and forget that they were replaced: together, so that a crash between is harmless.

        The state is written with the first batch: after a crash the store then undoes the rest when it opens.
        """
        deletes = [*gone, *(key for key, version in puts.items() if version is None)]
        kept = [(key, version) for key, version in puts.items() if version is not None]
        self._database.write([*kept, (STATE, self.state.to_json())], deletes)
        puts.clear()
        gone.clear()

    def _prune(self, oldest: Seqno) -> None:
        self.state = replace(self.state, oldest=oldest)
        self._database.write([(STATE, self.state.to_json())])
        self._database.delete_range(_replaced_key(Seqno(0)), _replaced_key(oldest))
        ended = [key for key, found in self._database.items(ENDED, _after(ENDED)) if seqno_of(found) < oldest]
        for key in ended:
            prefix = key.removeprefix(ENDED)
            self._database.delete_range(prefix, _after(prefix))
            self.known.pop(key, None)
        if ended:
            self._database.write((), ended)


def _list_backwards(database: Database, first: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The versions that events replaced, the newest first, from a key on."""
    return database.items(first, _replaced_key(Seqno(2**63 - 1)), backwards=True)


def _after(prefix: bytes) -> bytes:
    """The first key after those that begin so."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


def _replaced_key(seqno: Seqno, part: int = 0) -> bytes:
    return REPLACED + seqno.to_bytes(8, "big") + part.to_bytes(4, "big")
