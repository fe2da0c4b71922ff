"""Fields of statements, and of events that belong to the next or the last statement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from connector.inspect.binlog_events.control_fields import time_text
from connector.inspect.binlog_events.transaction_fields import microseconds_text
from connector.inspect.binlog_events.walk import LogEvent
from connector.log.transaction import statement_options as replay
from connector.mysql.binlog.events.load_data import DUPLICATES, load_query
from connector.mysql.binlog.events.mariadb import plain_query
from connector.mysql.binlog.events.old_load import CREATE_FILE, EXEC_LOAD, LOAD, NEW_LOAD, old_load
from connector.mysql.binlog.events.query import StatusVariables
from connector.mysql.binlog.events.statement_values import INTVAR, RAND, USER_VAR, statement_values
from connector.mysql.fields import Fields
from connector.mysql.values.charsets import decode_leniently, shown
from connector.mysql.values.session_names import named_option

QUERY_COMPRESSED: Final = 165
MARIADB_ANNOTATE: Final = 160
IN_HEADER: Final = "microseconds"  # of the time when the statement began


def _query(event: LogEvent) -> dict[str, Any]:
    body = plain_query(event.body) if event.code == QUERY_COMPRESSED else event.body
    return statement(body, event)


def statement(body: bytes, event: LogEvent) -> dict[str, Any]:
    """The fields of a QUERY event's body."""
    fields = Fields(body)
    thread_id, execution = fields.number(4), fields.number(4)
    schema_size, error = fields.number(1), fields.number(2)
    state = StatusVariables("utf8mb4")
    state.read(Fields(fields.text(2)))
    schema = fields.take(schema_size).decode(errors="replace")
    fields.take(1)
    microseconds = state.options.pop(IN_HEADER, "")
    exact = event.timestamp * 1_000_000 + int(microseconds or 0)
    found = {
        "thread_id": thread_id,
        "began": microseconds_text(exact) if microseconds else time_text(event.timestamp),
        "execution_seconds": execution,
        "error_code": error,
    }
    variables = {name: named_option(name, value, mariadb=event.mariadb) for name, value in state.options.items()}
    return found | {
        "variables": variables | state.facts,
        "noted_schemas": state.schemas,
        "schema": schema,
        "sql": shown(decode_leniently(fields.rest(), state.charset)),
    }


def _value(event: LogEvent) -> dict[str, Any]:
    """INTVAR, RAND, USER_VAR: the values, a variable as an SQL expression."""
    found: dict[str, Any] = dict(statement_values(event.code, event.body))
    if event.code == USER_VAR:
        ((name, value),) = found.items()
        return {"name": name.removeprefix(replay.VARIABLE), "value": value}
    return {name: int(value) for name, value in found.items()}


def _file(event: LogEvent) -> dict[str, Any]:
    fields = Fields(event.body)
    return {"file_id": fields.number(4), "block_bytes": fields.left}


def _file_id(event: LogEvent) -> dict[str, Any]:
    return {"file_id": Fields(event.body).number(4)}


def _load_query(event: LogEvent) -> dict[str, Any]:
    file_id, body, (start, end, duplicates) = load_query(event.body)
    word = DUPLICATES[duplicates] if duplicates < len(DUPLICATES) else str(duplicates)
    return {"file_id": file_id, "name_start": start, "name_end": end, "duplicates": word, **statement(body, event)}


def _old_load(event: LogEvent) -> dict[str, Any]:
    found = old_load(event.code, event.body)
    return {
        "thread_id": found.thread_id,
        "execution_seconds": found.execution,
        **({} if found.file_id is None else {"file_id": found.file_id, "block_bytes": len(found.block)}),
        "schema": found.schema,
        "sql": found.sql,
    }


def _rows_query(event: LogEvent) -> dict[str, Any]:
    text = event.body if event.code == MARIADB_ANNOTATE else event.body[1:]
    return {"sql": text.decode("utf-8", "backslashreplace")}


BY_TYPE: Final[dict[int, Callable[[LogEvent], dict[str, Any]]]] = {
    2: _query,
    QUERY_COMPRESSED: _query,
    INTVAR: _value,
    RAND: _value,
    USER_VAR: _value,
    LOAD: _old_load,
    CREATE_FILE: _old_load,
    NEW_LOAD: _old_load,
    9: _file,  # APPEND_BLOCK
    EXEC_LOAD: _file_id,
    11: _file_id,  # DELETE_FILE
    17: _file,  # BEGIN_LOAD_QUERY
    18: _load_query,
    29: _rows_query,
    MARIADB_ANNOTATE: _rows_query,
}
