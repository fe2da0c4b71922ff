"""A target in memory that fulfils the contract: staged rows are invisible, a commit shows all at once."""

from __future__ import annotations

import copy
from collections.abc import Container, Iterable, Mapping, Sequence

from connector.errors import Fenced
from connector.log.compact.metadata_columns import Value
from connector.log.compact.net_changes import AppliedEvent, Ddl, LeftOut, NetChanges
from connector.log.ids import Seqno
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import TargetPosition
from connector.targets.target_schema import Excluded, TargetSchema
from tests.support.compact_model import Counted, Keyed


class MemoryTarget:
    """Tables by name; `log` has the calls, `seen` the content after every commit."""

    def __init__(self) -> None:
        self.tables: dict[str, Keyed | Counted] = {}
        self.position: TargetPosition | None = None
        self.token = 0
        self.identity = ""
        self._mark = ""
        self.events: list[AppliedEvent] = []
        self.statements: list[str] = []
        self.by_hand: list[str] = []
        self.log: list[str] = []
        self.left_out: list[LeftOut] = []
        self.stamped: list[list[Value]] = []
        self.failing: dict[str, Exception] = {}
        self.trapped: Container[int] = ()  # the events that do not come
        self._staged: list[Sequence[NetChanges] | Ddl | Statement | TableName | None] = []
        self.loads: list[Ddl] = []

    @property
    def target_schema(self) -> TargetSchema:
        return TargetSchema()

    def claim(self, service: str, previous_token: int = 0, mark: str = "") -> TargetPosition:
        if previous_token not in (0, self.token) and not (mark and mark == self._mark):
            raise Fenced("a newer applier has taken the target over", service=service, token=previous_token)
        self.token += 1
        self._mark = mark
        self._staged = []
        return self.position or TargetPosition(service=service)

    def stage(self, changes: Sequence[NetChanges], *, last: bool) -> None:
        self._say("stage" if last else "part")
        self._staged.append(changes)

    def execute(self, statement: Statement, seqno: Seqno) -> None:
        self._say(f"execute {statement.sql}")
        self._staged.append(statement)

    def set_metadata(self, values: Sequence[Value], event: Sequence[Value] = ()) -> None:
        self._say("set metadata")
        self.stamped.append(list(values))

    def ddl(self, ddl: Ddl) -> None:
        self._say("ddl")
        assert not self._staged
        self._staged.append(ddl)

    def done_by_hand(self, ddl: Ddl) -> tuple[TableName, ...]:
        self._say("done by hand")
        self.by_hand += [one.sql for one in ddl.statements]
        return (TableName("shop", "orders"),)

    def exclude(self, tables: Mapping[TableName, Excluded]) -> None:
        self._say(f"exclude {', '.join(map(str, tables))}")

    def load(self, event: LoadEvent, ddl: Ddl) -> None:
        self._say(f"load {event.part} {event.table}")
        assert not self._staged
        self.loads.append(ddl)
        if event.part is Part.WHOLE:
            self._staged.append(event.table)

    def begin_snapshot(self) -> None:
        self._say("begin_snapshot")
        assert not self._staged
        self._staged.append(None)

    def leave_out(self, event: LeftOut) -> None:
        self._say(f"leave out {event.seqno}")
        self.left_out.append(event)

    def commit(self, position: TargetPosition, events: Iterable[AppliedEvent]) -> None:
        if error := self.failing.pop("before commit", None):
            raise error
        tables = copy.deepcopy(self.tables)
        for staged in self._staged:
            if staged is None:
                tables = {}
            elif isinstance(staged, TableName):
                tables.pop(str(staged), None)
            elif isinstance(staged, Ddl):
                self.statements += [one.sql for one in staged.statements]
            elif isinstance(staged, Statement):
                self.statements.append(staged.sql)
            else:
                for net in staged:
                    made = Keyed(net.layout.key) if net.layout.key else Counted()
                    tables.setdefault(str(net.layout.name), made).do(net)
        done = self.position.seqno if self.position else -1
        expected = [seqno for seqno in range(done + 1, position.seqno + 1) if seqno not in self.trapped]
        assert [event.seqno for event in events] == expected
        self.tables, self.position, self._staged = tables, position, []
        self.events += events
        self._say(f"commit {position.seqno}")
        if error := self.failing.pop("after commit", None):
            raise error

    def discard(self) -> None:
        self._say("discard")
        self._staged = []

    def close(self) -> None:
        self._staged = []

    def _say(self, what: str) -> None:
        self.log.append(what)
        if error := self.failing.pop(what, None):
            raise error
