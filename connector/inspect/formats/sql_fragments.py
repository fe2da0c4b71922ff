"""Prints events of the log as SQL that a MySQL executes, one transaction for each event.

Executed on a copy of the source's state before these events, it gives the state after them. The load of a table writes
the rows that a copy has, so it changes nothing there; where the table is missing, it makes it. Foreign keys are not
checked, because the log has the rows that cascades have changed. Triggers would fire: a copy must not have any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, count
from typing import Any, BinaryIO, Final

from connector.errors import escaped
from connector.inspect.formats.sql_literals import quoted
from connector.inspect.formats.sql_rows import Excluded, row_statements
from connector.inspect.formats.sql_session import SqlSession, statement_bytes
from connector.inspect.formats.tungsten import ListedFragment, or_null
from connector.log.rules import damaged
from connector.log.transaction.load import LoadEvent, Part

_DELIMITERS: Final = ("//", "$$", ";;", "@@@", "\\\\\\", "~~~~")
_LINE_COMMENT: Final = re.compile(r"--|#")
# CREATE TABLE … SELECT in MySQL 8.0.21 and newer: a clause for replicas alone; the event's rows and COMMIT follow.
_CREATE_SCHEMA: Final = re.compile(r"\s*CREATE\s+(DATABASE|SCHEMA)\b", re.IGNORECASE)
_CREATE_TABLE: Final = re.compile(r"\A\s*CREATE\s+TABLE(?!\s+IF\s)", re.IGNORECASE)
_START: Final = re.compile(r"\s+START\s+TRANSACTION\s*\Z", re.IGNORECASE)


class StatementPrinter:
    """Writes fragments as SQL: a `connector.inspect.formats.printing.LogPrinter`.

    Args:
        out: receives it.
        excluded: true for columns that are not to be set.
        hexadecimal: text of rows in hexadecimal.
    """

    def __init__(self, out: BinaryIO, excluded: Excluded, *, hexadecimal: bool = False) -> None:
        self._out = out
        self._excluded = excluded
        self._hexadecimal = hexadecimal
        self._session = SqlSession()

    def show(self, listed: ListedFragment) -> None:
        """Write one."""
        self._out.writelines(line + b"\n" for line in self._lines(listed))

    def flush(self) -> None:
        """Flush the output."""
        self._out.flush()

    def _lines(self, listed: ListedFragment) -> Iterator[bytes]:
        fragment = listed.fragment
        seqno = fragment["seqno"]
        if listed.voided:
            yield f"/* SEQ# = {seqno} / FRAG# = {fragment['fragno']} is not an event */".encode()
            return
        load = _load_of(listed)
        definition = fragment["kind"] == "ddl" or (load is not None and load.part is Part.BEGIN)
        if fragment["fragno"] == 0:
            gtid = "" if fragment["gtid"] is None else f" / GTID = {fragment['gtid']}"
            yield _comment(f"SEQ# = {seqno}{gtid}")
            if load is not None:
                yield _comment(f"LOAD = {load.load} / {load.part} of {load.table}")
            if definition:
                self._session.forget_schema()
            else:
                yield b"BEGIN;"
            if load is not None and load.part is Part.WHOLE:
                yield from self._session.for_rows()
                yield f"DELETE FROM {quoted(load.table.schema)}.{quoted(load.table.table)};".encode()
        for change in fragment["changes"]:
            yield from self._change(_if_missing(change) if load is not None else change)
        if fragment["last_frag"]:
            if not definition or any("sql" not in change for change in fragment["changes"]):
                yield b"ROLLBACK;" if fragment["outcome"] == "rollback" else b"COMMIT;"
            yield _comment(f"EVENTID = {or_null(fragment['event_id'])}")

    def _change(self, change: dict[str, Any]) -> Iterator[bytes]:
        if "sql" not in change:
            yield from self._session.for_rows()
            for statement in row_statements(change, self._excluded, hexadecimal=self._hexadecimal):
                yield f"{statement};".encode()
            return
        options = change["options"]
        schema = "" if _CREATE_SCHEMA.match(change["sql"]) else change["schema"]  # it may not exist yet
        yield from self._session.for_statement(schema, options)
        yield from _terminated(statement_bytes(_START.sub("", change["sql"]), options))


def _terminated(sql: bytes) -> Iterator[bytes]:
    """A statement and its end; with another delimiter if it has semicolons itself."""
    shown = sql.decode("latin-1").rstrip("; \t\r\n")  # bytes as characters
    if ";" in shown:
        delimiter = next(one for one in chain(_DELIMITERS, map("//{}//".format, count())) if one not in shown)
        yield from (f"DELIMITER {delimiter}".encode(), sql, delimiter.encode(), b"DELIMITER ;")
    elif _LINE_COMMENT.search(shown):
        yield from (sql, b";")
    else:
        yield sql if sql.rstrip().endswith(b";") else sql + b";"


def _load_of(listed: ListedFragment) -> LoadEvent | None:
    fragment = listed.fragment
    try:
        return LoadEvent.of(fragment["metadata"]) if fragment["kind"] == "load" else None
    except ValueError as error:
        raise damaged(error, seqno=fragment["seqno"], at=listed.place) from error


def _if_missing(change: dict[str, Any]) -> dict[str, Any]:
    """A load's definition, which changes nothing where its table is there."""
    return change | {"sql": _CREATE_TABLE.sub(r"\g<0> IF NOT EXISTS", change["sql"])} if "sql" in change else change


def _comment(text: str) -> bytes:
    return f"/* {escaped(text).replace('*/', '* /')} */".encode()
