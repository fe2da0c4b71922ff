"""LOAD DATA as servers before 5.0.3 logged it: LOAD, NEW_LOAD and CREATE_FILE events have the statement's clauses.

The formats are those of MySQL 5.0's `sql/log_event.h` (`Load_log_event`, `Create_file_log_event`, `sql_ex_info`). LOAD
(3.23) and NEW_LOAD name a file of the server, which the log does not hold. With CREATE_FILE (4.0, 4.1) the log holds
the file: its first block follows the clauses, APPEND_BLOCK events have the others, EXEC_LOAD executes the statement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from connector.ddl.syntax.tokens import quoted
from connector.errors import CorruptBinlog
from connector.mysql.fields import Fields

LOAD, CREATE_FILE, EXEC_LOAD, NEW_LOAD = 6, 8, 10, 12
OPTIONALLY, REPLACE, IGNORE = 0x02, 0x04, 0x08
BEFORE_FILE: Final = "LOAD DATA"  # a replay's file takes the place of what follows, up to INTO
ESCAPES: Final = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0", "\x1a": "\\Z"}


@dataclass(frozen=True, slots=True)
class OldLoad:
    """A LOAD DATA statement.

    Args:
        thread_id: the session.
        execution: seconds of its execution.
        schema: the default schema.
        sql: the statement, written as servers before 5.0.3 understand it.
        name_range: the characters of `sql` that name the file, with the treatment of duplicates and INTO.
        duplicates: error | ignore | replace.
        file_id: the file in the log; None: the log does not hold the file.
        block: the file's first bytes.
    """

    thread_id: int
    execution: int
    schema: str
    sql: str
    name_range: tuple[int, int]
    duplicates: str
    file_id: int | None
    block: bytes


def old_load(code: int, body: bytes) -> OldLoad:
    """Decodes LOAD, NEW_LOAD or CREATE_FILE.

    Fixed: 4 bytes thread, 4 seconds of execution, 4 lines to skip, 1 length of the table's name, 1 of the schema's, 4
    number of columns; CREATE_FILE: 4 id of the file. Then the clauses, a length per column, and names that end with a
    zero byte: the columns, the table, the schema, the file.

    Raises:
        CorruptBinlog: a length is wrong.
    """
    event = Fields(body)
    thread_id, execution, skipped = event.number(4), event.number(4), event.number(4)
    table_size, schema_size, count = event.number(1), event.number(1), event.number(4)
    file_id = event.number(4) if code == CREATE_FILE else None
    clauses, flags = _clauses(event) if code != LOAD else _one_byte_clauses(event)
    if count > event.left:
        raise CorruptBinlog("LOAD DATA has more columns than bytes", columns=count)
    columns = [_name(event, size) for size in event.take(count)]
    table, schema = _name(event, table_size), _name(event, schema_size)
    if code == CREATE_FILE:
        file = event.terminated().decode("latin1")
    else:  # some servers leave out the zero byte at the event's end
        file = event.rest().split(b"\0", 1)[0].decode("latin1")
    duplicates = "replace" if flags & REPLACE else "ignore" if flags & IGNORE else "error"
    word = "" if duplicates == "error" else f" {duplicates.upper()}"
    start = f"{BEFORE_FILE} INFILE {_quoted(file)}{word} INTO"
    sql = f"{start} TABLE {quoted(table)}{_written(clauses, flags)}"
    if skipped:
        sql += f" IGNORE {skipped} LINES"
    if columns:
        sql += f" ({', '.join(map(quoted, columns))})"
    block = event.rest() if code == CREATE_FILE else b""
    return OldLoad(
        thread_id, execution, schema, sql, (len(BEFORE_FILE), len(start)), duplicates, file_id, block
    )  # fmt: skip


def _clauses(event: Fields) -> tuple[list[str], int]:
    """Fields terminated, enclosed, lines terminated, starting, escaped: each a length and text; 1 byte flags."""
    clauses = [event.text().decode("latin1") for _ in range(5)]
    return clauses, event.number(1)


def _one_byte_clauses(event: Fields) -> tuple[list[str], int]:
    """3.23: one character each, 1 byte flags, 1 byte with a bit for each that is empty."""
    characters = event.take(5).decode("latin1")
    flags, empty = event.number(1), event.number(1)
    return ["" if empty >> index & 1 else character for index, character in enumerate(characters)], flags


def _written(clauses: list[str], flags: int) -> str:
    terminated, enclosed, line_end, line_start, escaped = clauses
    optionally = " OPTIONALLY" if flags & OPTIONALLY else ""
    return (
        f" FIELDS TERMINATED BY {_quoted(terminated)}{optionally} ENCLOSED BY {_quoted(enclosed)}"
        f" ESCAPED BY {_quoted(escaped)} LINES STARTING BY {_quoted(line_start)} TERMINATED BY {_quoted(line_end)}"
    )


def _name(event: Fields, size: int) -> str:
    name = event.take(size).decode("latin1")
    if event.number(1):
        raise CorruptBinlog("a zero byte is missing after a name of LOAD DATA")
    return name


def _quoted(text: str) -> str:
    return "'" + "".join(ESCAPES.get(character, character) for character in text) + "'"
