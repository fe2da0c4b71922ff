"""A MySQL server, as far as the protocol rests on it: a binary log in files, and the GTIDs in it.

A client sees its transaction committed once a semi-synchronous replica has acknowledged it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Final, Literal
from zlib import crc32

from connector.log.gtid.mysql import GtidSet
from connector.log.ids import UNKNOWN_SHARD
from connector.log.transaction.position import Digest, SourcePosition

UUID: Final = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
NUMBER: Final = attrgetter("number")


@dataclass(frozen=True)
class Sourced:
    """A transaction in the source's log.

    Args:
        number: of its GTID; another transaction may come to bear the same.
        content: what it does; two transactions may do the same.
        size: in fragments.
        schema: its shard, #UNKNOWN if it touches several.
        filtered: the configuration leaves it out.
        start: where it stands.
        xid: of an XA transaction; "" otherwise.
        does: commits what it does; or prepares it; or commits or rolls back what `of` has prepared.
        of: that was prepared; the rest is as there.
    """

    number: int
    content: int
    size: int
    schema: str
    filtered: bool
    start: SourcePosition
    xid: str = ""
    does: Literal["commit all", "prepare", "commit", "rollback"] = "commit all"
    of: Sourced | None = None

    @cached_property
    def gtid(self) -> str:
        return f"{UUID}:{self.number}"

    @cached_property
    def end(self) -> SourcePosition:
        return SourcePosition(self.start.file, self.start.offset + 100)

    @cached_property
    def digest(self) -> Digest:
        told = self.xid.encode() if self.does == "commit" else bytes([self.content])
        return Digest(self.size, self.size, crc32(told))

    @property
    def barrier(self) -> bool:
        return self.schema == UNKNOWN_SHARD

    @cached_property
    def pieces(self) -> tuple[tuple[int, int, int], ...]:
        number = self.of.number if self.of else self.number
        return tuple((number, self.content, piece) for piece in range(self.size))


@dataclass
class Source:
    """The server that is the source now."""

    server_uuid: str = "server-1"
    log: list[Sourced] = field(default_factory=list)
    file: int = 1
    offset: int = 4
    next_number: int = 1
    generation: int = 0  # +1 each time its history may have changed
    acknowledged: int = 0  # of the log; the transactions after them wait, unseen by their clients
    told: list[Sourced] = field(default_factory=list)  # their clients saw them committed
    on_told: Callable[[list[Sourced]], None] = lambda _: None

    def execute(self, content: int, size: int, schema: str, *, filtered: bool) -> None:
        self._log(Sourced(self.next_number, content, size, schema, filtered, self._here()))

    def xa(self, xid: str, content: int, size: int, schema: str, *, filtered: bool, commits: bool) -> None:
        """Prepare a transaction; or, when one of this xid is prepared, commit it or roll it back."""
        start, prepared = self._here(), self.prepared().get(xid)
        if prepared is None:
            self._log(Sourced(self.next_number, content, size, schema, filtered, start, xid, "prepare"))
        else:
            does: Literal["commit", "rollback"] = "commit" if commits else "rollback"
            self._log(replace(prepared, number=self.next_number, start=start, does=does, of=prepared))

    def prepared(self) -> dict[str, Sourced]:
        """What XA RECOVER lists."""
        found: dict[str, Sourced] = {}
        for transaction in self.log:
            if transaction.does == "prepare":
                found[transaction.xid] = transaction
            elif transaction.of is not None:
                del found[transaction.xid]
        return found

    def _here(self) -> SourcePosition:
        return SourcePosition(f"mysql-bin.{self.file:06d}", self.offset)

    def _log(self, transaction: Sourced) -> None:
        self.log.append(transaction)
        self.next_number += 1
        self.offset += 100

    def acknowledge(self, generation: int, position: SourcePosition) -> None:
        """A semi-synchronous replica has everything up to a position; one of an older server is not heard."""
        if generation != self.generation:
            return
        upto, log = (position.file, position.offset), self.log
        first = at = self.acknowledged
        while at < len(log) and (log[at].end.file, log[at].end.offset) <= upto:
            at += 1
        if at > first:
            self.acknowledged = at
            self.told += log[first:at]
            self.on_told(log[first:at])

    def _starts_again(self) -> None:
        """Clients lose their connections: of what waits they do not know whether it is committed."""
        self.generation += 1
        self.acknowledged = len(self.log)

    def executed(self) -> str:
        """`gtid_executed`."""
        spans: list[list[int]] = []
        for transaction in self.log:
            if spans and spans[-1][1] + 1 == transaction.number:
                spans[-1][1] = transaction.number
            else:
                spans.append([transaction.number, transaction.number])
        return UUID + "".join(f":{first}-{last}" for first, last in spans) if spans else ""

    def index_after(self, seen: GtidSet) -> int:
        """Of the first transaction that is not in `seen`: what auto-positioning sends."""
        at = 0
        for _, (first, last) in seen:
            if at < bisect_left(self.log, first, key=NUMBER):
                break
            at = bisect_right(self.log, last, key=NUMBER)
        return at

    def files(self) -> dict[str, int]:
        """What SHOW BINARY LOGS says."""
        sizes = {f"mysql-bin.{number:06d}": 4 for number in range(1, self.file + 1)}
        return sizes | {transaction.end.file: transaction.end.offset for transaction in self.log}

    def find(self, gtid: str) -> Sourced | None:
        return next((t for t in self.log if t.gtid == gtid), None)

    def crash(self, lost: int) -> None:
        """With `sync_binlog≠1`: the last transactions are gone, their GTIDs are given again, in a new file."""
        if lost:
            del self.log[-lost:]
        self._starts_again()
        self.next_number = self.log[-1].number + 1 if self.log else 1
        self.file += 1
        self.offset = 4

    def fail_over(self, lacking: int | None) -> None:
        """A replica becomes the source: the same transactions at other places, perhaps without one of them."""
        self.server_uuid = f"server-{int(self.server_uuid.split('-')[1]) + 1}"
        self.file, self.offset = 1, 4
        log, self.log = self.log, []
        for transaction in log:
            if transaction.number != lacking or transaction.xid:  # a replica that lacks a PREPARE refuses its COMMIT
                self.log.append(replace(transaction, start=self._here()))
            self.offset += 100
        self._starts_again()

    def fail_over_lagging(self, lost: int) -> None:
        """A replica becomes the source that had not received the last transactions; it gives other GTIDs than these."""
        if lost:
            del self.log[-lost:]
        self.fail_over(None)

    def make_anew(self) -> None:
        """The operator empties it, binary log and all, and fills it again."""
        self.log.clear()
        self.told.clear()
        self._starts_again()
        self.file, self.offset, self.next_number = 1, 4, 1

    def published(self) -> list[Sourced]:
        """What a log of it holds, in order."""
        return [t for t in self.log if not t.filtered and t.does in ("commit all", "commit")]
