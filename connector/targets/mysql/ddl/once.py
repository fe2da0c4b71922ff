"""Executes DDL exactly once, though MySQL commits each statement by itself.

Before a statement a row of `thl_ddl` is committed: the event, the statement, its number, and the tables that it names
as they are. The commit of the event's position empties the row. An applier that finds it filled asks whether the
statement was executed:

- A MySQL with GTIDs executes it under `gtid_next`, with a UUID derived from the target's identity and the number:
  `gtid_executed` then has it together with the statement's effect, or not at all. A GTID that is already in
  `gtid_executed` is not executed again. The row has it: a server may get GTIDs later, and a user the right to them.
- Any other server is asked for the tables: by InnoDB's numbers of tables (with the privilege PROCESS; else the times at
  which they were created) and their definitions.

If neither check decides, the applier stops and shows the tables before and now.

A newer applier ends the older one's session before it reads anything (`fence`), so that no statement comes later.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final
from uuid import UUID, uuid5

import pymysql

from connector import failpoints as faults
from connector.errors import TargetDiffers
from connector.log.transaction.layout import TableName
from connector.targets.mysql.ddl.operations import DdlStep, exists
from connector.targets.mysql.ddl.table_states import TableState, changed, executed_by, shown, state_key
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.server.errors import LACKS_PRIVILEGE, NO_SUCH_TABLE, code_of, connector_error, is_lost
from connector.targets.mysql.sql.literals import literal
from connector.targets.mysql.sql.names import table_condition, table_name, text_literal
from connector.targets.operations import Value
from connector.targets.target_schema import is_refusal

LOG: Final = logging.getLogger(__name__)

_NAMESPACE: Final = UUID("6f9f5e1c-7d0e-4c5b-9a53-53f1f0f7a1d2")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_]+")  # InnoDB's tables have other names in another form
_COUNTER: Final = re.compile(r" AUTO_INCREMENT=\d+")
_IDS: Final = {False: "innodb_tables", True: "innodb_sys_tables"}


@dataclass(frozen=True, slots=True)
class RecordedStatement:
    """A statement that may have been executed.

    Args:
        number: its number among all DDL statements of the service on this target.
        seqno: the event's.
        step: its index in the event.
        statement: its text.
        states: the tables that it names, before it.
        gtid: that under which it is executed; "": without one; None: an earlier version did not note it.
        refused: the server has refused it: it was not executed, and those of the event before it were.
    """

    number: int
    seqno: int
    step: int
    statement: str
    states: dict[str, TableState]
    gtid: str | None = None
    refused: bool = False


class DdlOnce:
    """Executes the DDL of one service.

    Args:
        session: the applier's.
        service: the service.
        identity: the target's identity.

    Attributes:
        reads_table_ids: true if the user may read InnoDB's numbers of tables.
        gtids: true if each statement is executed under a GTID of its own.
    """

    def __init__(self, session: ServerSession, service: str, identity: str) -> None:
        self._session = session
        self._where = f"service = {literal(service)}"
        self._service = service
        self._uuid = uuid5(_NAMESPACE, identity)
        self._number = 0
        self._begun: RecordedStatement | None = None
        self._executed = False  # something since the last commit
        self.reads_table_ids = self._may_read_table_ids()
        self.gtids = self._may_set_gtids()

    def claim(self) -> None:
        """Read what an earlier applier has begun."""
        query = f"SELECT number, seqno, step, statement, states FROM thl.thl_ddl WHERE {self._where}"
        found = self._session.rows(query)
        if not found:
            self._session.query(f"INSERT INTO thl.thl_ddl (service, number) VALUES ({literal(self._service)}, 0)")
            return
        number, seqno, step, statement, states = found[0]
        self._number = int(number)
        if seqno is not None:
            noted = json.loads(str(states))
            noted = noted if "tables" in noted else {"tables": noted}
            self._begun = RecordedStatement(
                *(self._number, int(seqno), int(step), str(statement), noted["tables"]),
                gtid=noted.get("gtid"),
                refused=noted.get("refused", False),
            )

    def run(self, seqno: int, steps: Sequence[DdlStep], done: list[DdlStep]) -> None:
        """Execute those statements of an event that are not executed yet.

        Args:
            seqno: the event.
            steps: all its statements.
            done: gets those that are executed; the next one is the cause of an error.

        Raises:
            TargetDiffers: whether one was executed cannot be known, or one of another event was.
            ConnectorError: the check of a statement refuses it.
            pymysql.MySQLError: the server refuses it, and has not executed it.
        """
        if self._begun is not None and self._begun.seqno != seqno:
            self.resolve(seqno)
        for index, step in enumerate(steps):
            begun = self._begun
            if index:
                done.append(steps[index - 1])
            if begun is not None and index < begun.step:
                continue
            if begun is not None and index == begun.step and not begun.refused:
                if begun.statement != step.text:
                    raise self._unknown(begun, step, "the event has another statement there now")
                if self._was_executed(begun, step) or not step.needed(self._session):
                    LOG.info("a DDL statement was executed before", extra={"seqno": seqno, "sql": step.text})
                    self._executed = True
                    continue
            else:
                step.check(self._session)
                if not step.sql or not step.needed(self._session):
                    continue
                self._begin(seqno, index, step)
            self._execute(step)

    def resolve(self, seqno: int) -> None:
        """Forget a statement of another event than the one that comes, unless it was executed.

        Raises:
            TargetDiffers: it was, or that is not known.
        """
        begun = self._begun
        if begun is None or self._executed:
            return
        if begun.refused:
            self._forget()
            return
        now = self._states_of(begun)
        if now != begun.states or self._has_gtid(begun):
            raise TargetDiffers(
                f"the target has executed a DDL statement of event {begun.seqno}, and event {seqno} comes",
                hint="undo the statement by hand, so that its tables are as before; then start again",
                sql=begun.statement,
                before=shown(begun.states),
                now=shown(now),
            )
        self._forget()

    def existed(self, seqno: int, name: TableName) -> bool:
        """True if a table existed before the first statement of an event, some of which may be executed.

        By that, and not by the tables as they are now, the event has the same statements when it comes again.
        """
        begun = self._begun
        if begun is not None and begun.seqno == seqno and state_key(name) in begun.states:
            return begun.states[state_key(name)] is not None
        return exists(self._session, name)

    @property
    def unfinished(self) -> bool:
        """True if a statement of an event was executed, or may have been, that is not committed."""
        return self._begun is not None

    def finish(self) -> str:
        """The statement that ends the event, in the transaction of its position."""
        return f"UPDATE thl.thl_ddl SET seqno = NULL, statement = NULL, states = NULL WHERE {self._where}"

    def committed(self) -> None:
        """The event is committed."""
        self._begun = None
        self._executed = False

    def _begin(self, seqno: int, index: int, step: DdlStep) -> None:
        self._number += 1
        if self.gtids:  # a target that was restored from a backup has a smaller number
            self._number = max(self._number, self._newest_gtid() + 1)
        states = {state_key(name): self._state(name) for name in dict.fromkeys(step.tables)}
        gtid = f"{self._uuid}:{self._number}" if self.gtids else ""
        self._record(RecordedStatement(self._number, seqno, index, step.text, states, gtid))
        faults.point("target.before_ddl")

    def _record(self, begun: RecordedStatement) -> None:
        values: dict[str, Value] = {
            "number": begun.number,
            "seqno": begun.seqno,
            "step": begun.step,
            "statement": begun.statement,
            "states": json.dumps({"tables": begun.states, "gtid": begun.gtid, "refused": begun.refused}),
        }
        assignments = ", ".join(f"{name} = {literal(value)}" for name, value in values.items())
        self._session.query(f"UPDATE thl.thl_ddl SET {assignments} WHERE {self._where}")
        self._begun = begun

    def _execute(self, step: DdlStep) -> None:
        begun = self._begun
        if begun is None:
            raise RuntimeError("a statement without its row in thl_ddl")
        try:
            if step.settings:
                self._session.enter(step.settings, step.database)
            try:
                if begun.gtid:
                    self._session.query(f"SET gtid_next = '{begun.gtid}'")
                self._session.query(step.sql)
            except pymysql.MySQLError as error:
                if begun.gtid and not is_lost(error):
                    self._session.query("ROLLBACK")  # or the session goes on owning the GTID
                raise
            finally:
                self._leave(step)
        except pymysql.MySQLError as error:
            if not is_lost(error):
                self._take_back(begun, error)
            raise
        self._executed = True
        faults.point("target.after_ddl")

    def _leave(self, step: DdlStep) -> None:
        """End the use of one GTID, and of the settings of one statement; a lost session has neither."""
        try:
            if self.gtids:
                self._session.query("SET gtid_next = 'AUTOMATIC'")
            if step.settings:
                self._session.leave(step.settings)
        except pymysql.MySQLError as error:
            if not is_lost(error):
                raise

    def _take_back(self, begun: RecordedStatement, error: pymysql.MySQLError) -> None:
        """Note that the server has refused the statement: those of the event before it were executed.

        Nothing is noted of its first one, nor if a table may be the reason (`is_refusal`): without that table the event
        has other statements when it comes again.
        """
        if begun.step and not is_refusal(connector_error(error)):
            self._record(replace(begun, refused=True))
        else:
            self._forget()

    def _forget(self) -> None:
        self._session.query(self.finish())
        self._begun = None

    def _has_gtid(self, begun: RecordedStatement) -> bool:
        if self._session.mariadb or begun.gtid == "" or (begun.gtid is None and not self.gtids):
            return False
        gtid = begun.gtid or f"{self._uuid}:{begun.number}"
        return bool(self._session.rows(f"SELECT GTID_SUBSET('{gtid}', @@GLOBAL.gtid_executed)")[0][0])

    def _newest_gtid(self) -> int:
        """The greatest number whose GTID the server has executed; it would pass over a statement under such a one."""
        ((executed,),) = self._session.rows("SELECT @@GLOBAL.gtid_executed")
        ends = [0]
        for one in str(executed).lower().split(","):
            uuid, *parts = one.strip().split(":")
            if uuid == str(self._uuid):
                numbers = takewhile(lambda part: part[:1].isdecimal(), parts)  # those of tags follow
                ends += [int(part.rpartition("-")[2]) for part in numbers]
        return max(ends)

    def _was_executed(self, begun: RecordedStatement, step: DdlStep) -> bool:
        now = self._states_of(begun)
        if self._has_gtid(begun):
            return True
        if begun.gtid or (begun.gtid is None and self.gtids):
            if changed(step, begun.states, now):
                raise self._unknown(begun, step, "gtid_executed lacks it, and the tables have changed", now)
            return False
        found = executed_by(step, begun.states, now)
        if found is None:
            raise self._unknown(begun, step, "the tables do not tell", now)
        return found

    def _unknown(
        self, begun: RecordedStatement, step: DdlStep, reason: str, now: dict[str, TableState] | None = None
    ) -> TargetDiffers:
        now = self._states_of(begun) if now is None else now
        return TargetDiffers(
            f"whether the target has executed a DDL statement of event {begun.seqno} is not known: {reason}",
            hint="make its tables as before by hand and empty the event's row: UPDATE thl.thl_ddl SET seqno = NULL "
            f"WHERE {self._where}; or do the statement by hand, empty the row, and thl apply --done-seqno "
            f"{begun.seqno} --reason …",
            sql=begun.statement,
            planned=None if step.text == begun.statement else step.text,
            before=shown(begun.states),
            now=shown(now),
        )

    def _states_of(self, begun: RecordedStatement) -> dict[str, TableState]:
        return {name: self._state(TableName(*json.loads(name))) for name in begun.states}

    def _state(self, name: TableName) -> TableState:
        """The identifier of the table, and its definition without the next number of AUTO_INCREMENT; None: no table."""
        try:
            ((_, definition, *_),) = self._session.rows(f"SHOW CREATE TABLE {table_name(name)}")
        except pymysql.MySQLError as error:
            if code_of(error) in NO_SUCH_TABLE:
                return None
            raise
        body = _COUNTER.sub("", str(definition)).partition("\n")[2]
        return [self._identifier(name), body]

    def _identifier(self, name: TableName) -> str:
        if self.reads_table_ids and all(_PLAIN.fullmatch(part) for part in name):
            inner = f"{name.schema}/{name.table}"
            inner = inner.lower() if self._session.folds else inner
            query = f"SELECT min(table_id) FROM information_schema.{_IDS[self._session.mariadb]} WHERE BINARY name = "
            partitions = f"BINARY left(name, {len(inner) + 1}) = {text_literal(inner + '#')}"
            ((number,),) = self._session.rows(f"{query}{text_literal(inner)} OR {partitions}")
            if number is not None:
                return f"table {number}"
        where = table_condition(name)
        ((created,),) = self._session.rows(f"SELECT create_time FROM information_schema.tables WHERE {where}")
        return f"created {created}"

    def _may_read_table_ids(self) -> bool:
        try:
            self._session.rows(f"SELECT 1 FROM information_schema.{_IDS[self._session.mariadb]} LIMIT 1")
        except pymysql.MySQLError as error:
            if code_of(error) != LACKS_PRIVILEGE:
                raise
            return False
        return True

    def _may_set_gtids(self) -> bool:
        if self._session.mariadb or self._session.rows("SELECT @@GLOBAL.gtid_mode") != [("ON",)]:
            return False
        try:
            self._session.query("SET gtid_next = 'AUTOMATIC'")
        except pymysql.MySQLError as error:
            if code_of(error) != LACKS_PRIVILEGE:
                raise
            hint = "GRANT REPLICATION_APPLIER ON *.* TO the user in target.url"
            LOG.warning("DDL is executed without GTIDs: the user may not set gtid_next", extra={"hint": hint})
            return False
        return True
