"""Compares the values that ADD COLUMN gives to existing rows with those of a server, form by form.

The answer of the server is the row in its binary log, as we read it anyway; so is what it logs of the session.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pymysql

from connector.config.filters import Filters
from connector.errors import ConnectorError
from connector.log.transaction.batch import Rows, Statement
from connector.log.transaction.layout import TableName
from connector.mysql.schema_history.table_history import TableHistory
from connector.mysql.server import connection as capture
from connector.mysql.server.dump import open_stream
from connector.mysql.server.snapshot_point import prepare_session
from connector.mysql.server.source_facts import read_facts
from connector.mysql.server.source_state import end_position
from connector.mysql.snapshot.information_schema import read_definitions
from connector.mysql.transforms.filters import Filter
from connector.targets.ddl.plan import plan
from connector.targets.operations import AlterTable, KnownValue
from connector.targets.target_schema import TargetSchema
from tests.support.binlog import changes, images, reader_of_stream, source_of
from tests.support.default_forms import Session
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer

SCHEMA = "default_oracle"
TABLE = TableName(SCHEMA, "t")
CREATE = f"CREATE TABLE {SCHEMA}.t (id INT PRIMARY KEY, k INT) CHARACTER SET utf8mb4"
AT_ONCE = 40  # columns of one table


@dataclass(slots=True)
class Answer:
    """A server's result for a form that it accepted.

    Args:
        definition: the column's, without its name.
        sql, options: the statement, as logged.
        alter: the ALTER COLUMN … SET DEFAULT behind it; "" for none.
        existing: value in the existing row.
        inserted: value in a row inserted without the column.
    """

    definition: str
    sql: str = ""
    alter: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    existing: Any = None
    inserted: Any = None


def ask(
    server: SqlServer, session: Session, definitions: Iterable[str], *, altering: bool = False
) -> tuple[list[Answer], Counter[str]]:
    """Executes every form in a session; returns the results, and the number of refusals by error.

    Args:
        server: the server.
        session: the session.
        definitions: the forms.
        altering: whether a statement of its own gives the column its default.
    """
    connection = connect(server, charset=session.client)
    cursor = connection.cursor()
    for setting in session.settings:
        cursor.execute(setting)
    if "mariadb" in connection.get_server_info().lower():
        cursor.execute("SET check_constraint_checks = OFF")  # a row may hold a default that is no JSON
    cursor.execute(f"DROP DATABASE IF EXISTS {SCHEMA}")
    cursor.execute(f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4")
    cursor.execute(f"USE {SCHEMA}")
    beside = capture.connect(source_of(server))
    prepare_session(beside, source_of(server))
    start = end_position(beside)
    # Some sessions let in any bytes.
    facts = read_facts(beside)
    told = Filter(Filters(do=(SCHEMA,)), keep_invalid_text=(f"{SCHEMA}.*.*",), unlogged_options=facts.unlogged_options)
    naming = None if facts.logs_column_names else TableHistory(read_definitions(beside, told), told)
    answers: dict[str, Answer] = {}
    refused: Counter[str] = Counter()
    columns: int | None = None
    for number, definition in enumerate(definitions):
        if columns is None:
            cursor.execute(CREATE)
            cursor.execute("INSERT INTO t VALUES (1, 1)")
            columns = 0
        copy = ", ALGORITHM=COPY" if zlib.crc32(definition.encode()) % 4 == 0 else ""
        try:
            kind, _, default = definition.partition(" DEFAULT ") if altering else (definition, "", "")
            cursor.execute(f"ALTER TABLE t ADD COLUMN c{number} {kind}{copy}")
            columns += 1
            if default:
                cursor.execute(f"ALTER TABLE t ALTER COLUMN c{number} SET DEFAULT {default}")
        except (pymysql.MySQLError, UnicodeEncodeError) as error:
            refused[str(error.args[0])] += 1
            continue
        answers[f"c{number}"] = Answer(definition)
        if columns == AT_ONCE:
            _finish(cursor)
            columns = None
    if columns is not None:
        _finish(cursor)
    reader = reader_of_stream(open_stream(source_of(server), start), told, resolver=naming)
    end = end_position(beside)
    found = []
    while reader.position != end:
        found += reader.read()
    reader.close()
    for change in changes(found):
        if isinstance(change, Statement) and "ADD COLUMN" in change.sql and change.sql.split()[5] in answers:
            answer = answers[change.sql.split()[5]]
            answer.sql, answer.options = change.sql, dict(change.options)
        elif isinstance(change, Statement) and "ALTER COLUMN" in change.sql:
            answers[change.sql.split()[5]].alter = change.sql
        elif isinstance(change, Rows) and change.layout.name == TABLE:
            _note(change, answers)
    cursor.execute(f"DROP DATABASE {SCHEMA}")
    connection.close()
    beside.close()
    return list(answers.values()), refused


def _finish(cursor: Any) -> None:
    """Reads the existing row, and inserts one that gives no column a value."""
    cursor.execute("UPDATE t SET k = 2")
    cursor.execute("SET @mode = @@sql_mode, sql_mode = ''")
    cursor.execute("INSERT IGNORE INTO t (id, k) VALUES (2, 2)")
    cursor.execute("SET sql_mode = @mode")
    cursor.execute("DROP TABLE t")


def _note(change: Rows, answers: dict[str, Answer]) -> None:
    ((before, after),) = images(change)
    image = before or after
    assert image is not None
    for column, value in zip(change.layout.columns, image, strict=True):
        if column.name not in answers:
            continue
        if change.action.name == "UPDATE":
            answers[column.name].existing = value
        else:
            answers[column.name].inserted = value


@dataclass(slots=True)
class Outcome:
    """The counts of a grid.

    Args:
        equal: number of forms for which connector and server agree.
        stopped: those of which we say nothing, with the server's value, and why.
        wrong: all others.
    """

    equal: int = 0
    stopped: dict[str, str] = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)


def judge(answers: Iterable[Answer]) -> Outcome:
    """Compares the connector's values with the server's."""
    outcome = Outcome()
    before = plan(Statement(SCHEMA, CREATE), TargetSchema(), 0).target_schema
    for answer in answers:
        try:
            (operation,) = plan(Statement(SCHEMA, answer.sql, answer.options), before, 0).operations
        except ConnectorError as error:
            outcome.stopped[answer.definition] = f"{answer.existing!r}: {error.message}"
            continue
        except Exception as error:  # noqa: BLE001 - a form that fails unexpectedly is reported beside the others
            outcome.wrong[answer.definition] = repr(error)
            continue
        assert isinstance(operation, AlterTable)
        origin, known = operation.origins[-1], operation.after.defaults_of()
        name = operation.after.columns[-1].name
        if not isinstance(origin, KnownValue):
            outcome.stopped[answer.definition] = f"{answer.existing!r}: {origin}"
        elif not same(origin.value, answer.existing):
            outcome.wrong[answer.definition] = f"{origin.value!r}, not {answer.existing!r}"
        elif name in known and not same(known[name], answer.inserted):
            outcome.wrong[answer.definition] = f"inserted: {known[name]!r}, not {answer.inserted!r}"
        else:
            outcome.equal += 1
    return outcome


def same(ours: Any, theirs: Any) -> bool:
    """True if two values are equal, including the sign of zero."""
    return type(ours) is type(theirs) and repr(ours) == repr(theirs)
