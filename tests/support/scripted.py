"""A source that follows a script: its transactions, and where its connection breaks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

from connector.errors import ConnectorError, PreflightError, SourceUnavailable
from connector.log.gtid.mysql import GtidSet
from connector.log.ids import Action, LogId
from connector.log.transaction.batch import PositionAdvance, Rows, Statement, TransactionBatch
from connector.log.transaction.definition import Definitions, Item
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.position import Finished, PositionRecord, SourcePosition
from connector.log.writing.online import SourceFound
from tests.support import encoding as making

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
START = SourcePosition("mysql-bin.000002", 1000)
LAYOUT = TableLayout(TableName("a", "t"), (Column("c", "varchar(100)"),), (0,))


def transaction(number: int, *, pieces: int = 1, rows: int = 5, text: str = "x") -> list[TransactionBatch]:
    """Transaction `number` (from 1), each batch with rows of its own."""
    begin = replace(
        making.BEGIN, gtid=f"{UUID}:{number}", start=SourcePosition("mysql-bin.000002", 1000 * number), metadata={}
    )
    ending = replace(making.ENDING, end=SourcePosition("mysql-bin.000002", 1000 * number + 900))
    result = []
    for piece in range(pieces):
        values = [{"before": None, "after": [f"{text}-{number}-{piece}-{row}"]} for row in range(rows)]
        change = making.Change(LAYOUT, Action.INSERT, values)
        result.append(TransactionBatch(None, list(making.whole([change])[0].changes), None))
    result[0].begin = begin
    result[-1].ending = ending
    return result


@dataclass
class ScriptedStream:
    """Returns batches one at a time."""

    source: ScriptedSource
    rest: list[tuple[int, int, TransactionBatch]]
    ended: bool = False

    def read(self, timeout: float) -> list[Item]:
        if not self.rest:
            self.source.stop.set()
            return []
        number, index, piece = self.rest[0]
        if (number, index) in self.source.breaks:
            self.source.breaks.remove((number, index))
            raise SourceUnavailable("the script breaks the stream", transaction=number, piece=index)
        if number in self.source.lost:
            self.rest = [item for item in self.rest if item[0] != number]
            return [PositionAdvance(SourcePosition("mysql-bin.000002", 1000 * number + 900), f"{UUID}:{number}")]
        del self.rest[0]
        return [piece]

    def close(self) -> None:
        self.rest = []


@dataclass(frozen=True)
class ScriptedTable:
    """The table of which all transactions are."""

    published: TableName = LAYOUT.name
    definition: Sequence[Rows | Statement] = ()
    key_columns: tuple[str, ...] = ()
    load_identity: tuple[str, ...] = ()
    has_key: bool = True
    refusal: PreflightError | None = None
    estimate: int = 5

    def is_key(self, after: tuple[str, ...]) -> bool:
        return True


@dataclass
class ScriptedSnapshot:
    """One table; the producer may be stopped before it is published."""

    source: ScriptedSource
    position: SourcePosition = START
    gtid_set: str | None = ""
    time: int = 1
    server_id: int = 1
    server_uuid: str = UUID
    schemas: Sequence[Statement] = ()
    unloaded: Sequence[ScriptedTable] = ()
    definitions: Definitions = field(default_factory=Definitions)

    @property
    def tables(self) -> dict[TableName, ScriptedTable]:
        if self.source.stop_in_load:
            self.source.stop.set()
        return {LAYOUT.name: ScriptedTable()}


@dataclass
class ScriptedRound:
    """The table's rows before its first transaction, in one round."""

    source: ScriptedSource
    names: Collection[TableName]
    locked: bool = True
    position: SourcePosition = START
    time: int = 1
    server_id: int = 1
    server_uuid: str = UUID
    tables: Mapping[TableName, ScriptedTable] = field(default_factory=lambda: {LAYOUT.name: ScriptedTable()})

    def open(self, consumed: str | None) -> None:
        if self.source.load_failures:
            raise self.source.load_failures.pop(0)

    def rows(self, names: Collection[TableName]) -> Iterator[tuple[TableName, Rows]]:
        values = [{"before": None, "after": [f"loaded-{row}"]} for row in range(5)]
        for change in making.whole([making.Change(LAYOUT, Action.READ, values)])[0].changes:
            assert isinstance(change, Rows)
            yield LAYOUT.name, change

    def progress(self, name: TableName) -> tuple[tuple[str, ...] | None, bool]:
        self.source.rounds_read += 1
        return None, True

    def failed(self, name: TableName) -> ConnectorError | None:
        return None

    def close(self) -> None:
        pass


@dataclass
class ScriptedSource:
    """The source that the producer sees.

    Args:
        stop: set when a stream has given everything.
        transactions: number n at index n - 1.
        breaks: (transaction, piece) before which the connection is lost, each once.
        lost: transactions that come as if filtered.
        purged: transactions that are no longer there.
        loads: the log begins with an initial load.
        snapshot_failures: errors with which the definitions are not read.
        load_failures: errors with which a round does not open.
        stop_in_load: the producer is stopped while it publishes the definitions.
    """

    stop: Event
    transactions: list[list[TransactionBatch]]
    breaks: list[tuple[int, int]] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    purged: set[int] = field(default_factory=set)
    loads: bool = False
    snapshot_failures: list[ConnectorError] = field(default_factory=list)
    load_failures: list[ConnectorError] = field(default_factory=list)
    stop_in_load: bool = False
    rounds_read: int = 0
    acknowledger: None = None

    def check(self, *, load: bool) -> None:
        pass

    def facts(self, *, new: bool) -> SourceFound:
        return SourceFound(
            source_id="db:3306",
            server_uuid=UUID,
            now=1,
            log_id=LogId("ab" * 16),
            start=SourcePosition("mysql-bin.000002", 4),
            gtid_set="",
            executed=f"{UUID}:1-{len(self.transactions)}",
            snapshot=self.loads and new,
        )

    def check_widened(self, before: Mapping[str, Any] | None, accepted: Sequence[str]) -> Mapping[TableName, TableName]:
        return {}

    def holds(self, finished: Finished) -> bool:
        return finished.gtid is None or int(finished.gtid.rpartition(":")[2]) not in self.purged

    def created(self, file: str) -> int:
        return 0

    def redo(self, position: PositionRecord, tables: Definitions | None = None) -> ScriptedStream:
        assert position.finished is not None
        assert position.finished.gtid is not None
        seen = GtidSet.parse(position.gtid_set or "")
        seen.remove(position.finished.gtid)
        return self._after(seen)

    def after(self, position: PositionRecord, tables: Definitions | None = None) -> ScriptedStream:
        return self._after(GtidSet.parse(position.gtid_set or ""))

    def snapshot(self) -> ScriptedSnapshot:
        if self.snapshot_failures:
            raise self.snapshot_failures.pop(0)
        return ScriptedSnapshot(self)

    def round(
        self, after: Mapping[TableName, tuple[str, ...] | None], keys: Mapping[TableName, Any], *, lock: bool
    ) -> ScriptedRound:
        return ScriptedRound(self, tuple(after))

    def load_pause(self, position: PositionRecord, newest_commit: int | None) -> None:
        pass

    def _after(self, seen: GtidSet) -> ScriptedStream:
        return ScriptedStream(
            self,
            [
                (number, index, piece)
                for number, pieces in enumerate(self.transactions, 1)
                if f"{UUID}:{number}" not in seen
                for index, piece in enumerate(pieces)
            ],
        )
