"""QUERY events: a statement and the state of its session.

The format is that of MySQL's `libs/mysql/binlog/event/statement_events.h`: a fixed part, status variables (a code
each; the code determines the value's length), the default schema, the text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from connector.ddl.syntax.tokens import CONTROLS, SPACES, in_tokens
from connector.errors import ConnectorError, Unsupported
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement
from connector.mysql.binlog.events.capture_filter import CaptureFilter
from connector.mysql.binlog.events.xa import xa_statement
from connector.mysql.fields import Fields
from connector.mysql.values.charsets import UTF8, decode, decode_leniently, shown, strays, width
from connector.mysql.values.collations import charset_of


def _leading(executed: str) -> re.Pattern[str]:
    """Matches comments, and what a server executes inside of comments, before a statement's first word.

    Args:
        executed: follows `/*` in an executed comment. Comments for a later version are logged as ordinary ones.
    """
    line = rf"(?:#|--(?=[{CONTROLS}]))[^\n]*(?:\n|$)"
    return re.compile(rf"(?:[{SPACES}]+|{line}|/\*{executed}[0-9]*|/\*(?!{executed}).*?\*/|\()*", re.DOTALL)


LEADING, LEADING_OF_MARIADB = _leading("!"), _leading("M?!")
WORDS = re.compile(r"[A-Za-z_]+")
CONTROL = {
    "BEGIN": "begin",
    "COMMIT": "commit",
    "ROLLBACK": "rollback",
    "SAVEPOINT": "savepoint",
    "RELEASE": "savepoint",
}
QUERY_FIXED = 13
CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH", "CALL", "DO", "SELECT", "VALUES"})
TOO_MANY = 254  # count of schemas that are not listed
# MariaDB's binlog_alter_two_phase logs an ALTER when it starts, and again when it ends.
ALTERS = {0x02: "start", 0x04: "commit", 0x08: "rollback"}
UNFINISHED = frozenset({"start", "rollback"})
# Flags of the event: temporary tables of the session are used; the default schema may be missing.
THREAD_SPECIFIC, SUPPRESS_USE = 0x4, 0x8
# Accounts and grants are in MySQL's own schemas: statements about them are published.
SYSTEM = frozenset({"", "mysql", "sys", "information_schema", "performance_schema"})


@dataclass(frozen=True, slots=True)
class Query:
    """The event, decoded.

    Args:
        statement: the text and its options. The text is decoded leniently (`decode_leniently`), so that it can be
            parsed with any bytes in it; `with_shown_bytes` makes the published statement.
        control: begin | commit | rollback | savepoint | "rollback to": steers a transaction; "change": changes rows;
            xa start | xa end | xa commit | xa rollback; "": a definition.
        schemas: the schemas that the source noted for the statement; empty: it noted none.
        charset: character set of the text.
        xid: xid of an XA statement.
    """

    statement: Statement
    control: str
    schemas: tuple[str, ...]
    charset: str
    xid: str = ""

    @property
    def touched(self) -> tuple[str, ...]:
        """The noted schemas; without any, the default schema."""
        return self.schemas or (self.statement.schema,)


def query(
    body: bytes,
    timestamp: int,
    flags: int = 0,
    charset: str = "utf8mb4",
    *,
    mariadb: bool = False,
    keeps_bytes: bool = False,
) -> Query:
    """Decodes a QUERY event.

    Args:
        body: the event without its header.
        timestamp: the header's time: seconds since 1970 UTC when the statement began.
        flags: the header's flags.
        charset: character set of the text, if the event does not name it.
        mariadb: true if MariaDB wrote it: for MySQL `/*M!` begins an ordinary comment.
        keeps_bytes: true if a text that is not UTF-8 keeps its bytes, to be executed again.

    Raises:
        Unsupported: an XA statement is not understood.
        CorruptBinlog: a length is wrong.
    """
    event = Fields(body)
    thread_id = event.number(4)
    event.take(4)  # seconds of execution
    schema_size = event.number(1)
    error = event.number(2)
    state = StatusVariables(charset)
    state.read(Fields(event.text(2)))
    schema = event.take(schema_size).decode(errors="replace")
    event.take(1)
    text = event.rest()
    sql = decode_leniently(text, state.charset)
    if strays(sql) or (keeps_bytes and state.charset not in UTF8):
        state.options[replay.TEXT] = base64.b64encode(text).decode("ascii")
    state.options["timestamp"] = f"{timestamp}.{state.options.pop('microseconds', '0').zfill(6)}"
    if error:
        state.options["error_code"] = str(error)
    if flags & THREAD_SPECIFIC:
        state.options[replay.PSEUDO_THREAD_ID] = str(thread_id)
    if flags & SUPPRESS_USE:
        state.options["suppress_use"] = "1"
    control, xid = _control(sql, LEADING_OF_MARIADB if mariadb else LEADING)
    return Query(Statement(schema, sql, state.options), control, tuple(state.schemas), state.charset, xid)


def captures_statement(found: Query, filters: CaptureFilter) -> bool:
    """True if a definition, or a part of it, is captured.

    Raises:
        Unsupported: this is not known.
    """
    if found.statement.options.get("alter") in UNFINISHED:
        return False
    if found.control:
        return any(schema in SYSTEM or filters.captures_schema(schema) for schema in found.touched)
    return bool(filters.definitions(found.statement, found.schemas))


def may_capture(found: Query, filters: CaptureFilter) -> bool:
    """True if a definition is captured, or if this is not known: it may belong to an ignored transaction."""
    try:
        return captures_statement(found, filters)
    except Unsupported:
        return True


def may_change_captured(found: Query, filters: CaptureFilter) -> bool:
    """True if a change logged as a statement may concern a captured table.

    Only the noted schemas decide: the text can name other schemas than the default one.
    """
    return not found.schemas or any(filters.captures_schema(schema) for schema in found.schemas)


def _control(sql: str, leading: re.Pattern[str]) -> tuple[str, str]:
    start = leading.match(sql)
    words = [word.upper() for word in WORDS.findall(sql[start.end() if start else 0 :][:200])[:2]] or [""]
    if words[0] in CHANGES:
        return "change", ""
    if words[0] == "XA":
        return xa_statement(sql)
    if words == ["ROLLBACK", "TO"]:
        return "rollback to", ""
    return CONTROL.get(words[0], ""), ""


def with_shown_bytes(statement: Statement, *, keeps_bytes: bool = False) -> Statement:
    """The statement as it is published: invalid bytes are shown as `\\xe9`.

    If invalid bytes are not in comments alone, the shown text differs from the source's; an option keeps its bytes.
    """
    if replay.TEXT not in statement.options:
        return statement
    options = dict(statement.options)
    if not keeps_bytes and not in_tokens(statement, strays):
        del options[replay.TEXT]
    return Statement(statement.schema, shown(statement.sql), options)


class StatusVariables:
    """Reads status variables into options of a statement."""

    def __init__(self, charset: str) -> None:
        self.options: dict[str, str] = {}
        self.facts: dict[str, str] = {}  # variables that are no option of the statement
        self.schemas: list[str] = []
        self.charset = charset

    def read(self, event: Fields) -> None:
        """Reads all variables.

        Raises:
            Unsupported: a variable is not known, so its length is not known either.
        """
        while event.left:
            code = event.number(1)
            if code not in VARIABLES:
                raise Unsupported(f"a statement has the unknown status variable {code}", variable=code)
            VARIABLES[code](self, event)

    def _flags(self, event: Fields) -> None:
        """Session flags: bit 14 is set for on, the others for off."""
        flags = event.number(4)
        self.options |= {
            "sql_auto_is_null": str(flags >> 14 & 1),
            "autocommit": str(1 - (flags >> 19 & 1)),
            "foreign_key_checks": str(1 - (flags >> 26 & 1)),
            "unique_checks": str(1 - (flags >> 27 & 1)),
        }
        if flags >> 24 & 1:  # MariaDB; MySQL has a variable of its own
            self.options["explicit_defaults_for_timestamp"] = "1"

    def _increment(self, event: Fields) -> None:
        self.options["auto_increment_increment"] = str(event.number(2))
        self.options["auto_increment_offset"] = str(event.number(2))

    def _charsets(self, event: Fields) -> None:
        client, connection, server = (event.number(2) for _ in range(3))
        self.charset = charset_of(client)
        self.options |= {
            replay.CHARSET: self.charset,
            replay.CHARSET_ID: str(client),
            "collation_connection": str(connection),
            "collation_server": str(server),
        }

    def _invoker(self, event: Fields) -> None:
        user, host = (event.text().decode(errors="replace") for _ in range(2))
        self.options["invoker"] = f"{user}@{host}"

    def _schemas(self, event: Fields) -> None:
        count = event.number(1)
        if count != TOO_MANY:
            self.schemas = [event.terminated().decode(errors="replace") for _ in range(count)]

    def _alter(self, event: Fields) -> None:
        """MariaDB's extra flags of the GTID event; commit and rollback are followed by the number of the start."""
        flags = event.number(1)
        for bit, phase in ALTERS.items():
            if flags & bit:
                self.options["alter"] = phase
        if flags & 0x0C:
            event.take(8)

    def _set_collations(self, event: Fields) -> None:
        """MariaDB's character_set_collations: pairs of the ids of a set and of its default collation."""
        pairs = [(event.number(2), event.number(2)) for _ in range(event.number(1))]
        self.options["character_set_collations"] = ",".join(f"{first}={second}" for first, second in pairs)

    def _catalog(self, event: Fields) -> None:
        self.facts["catalog"] = event.text().decode(errors="replace")
        event.take(1)


Reader = Callable[[StatusVariables, Fields], None]


def _number(name: str, size: int) -> Reader:
    def read(state: StatusVariables, event: Fields) -> None:
        state.options[name] = str(event.number(size))

    return read


def _text(name: str) -> Reader:
    def read(state: StatusVariables, event: Fields) -> None:
        state.options[name] = event.text().decode(errors="replace")

    return read


def _fact(name: str, size: int) -> Reader:
    def read(state: StatusVariables, event: Fields) -> None:
        state.facts[name] = str(event.number(size))

    return read


VARIABLES: dict[int, Reader] = {
    0: StatusVariables._flags,
    1: _number("sql_mode", 8),
    2: StatusVariables._catalog,
    3: StatusVariables._increment,
    4: StatusVariables._charsets,
    5: _text("time_zone"),
    6: _text("catalog"),
    7: _number("lc_time_names", 2),
    8: _number("collation_database", 2),
    9: _fact("table_map_for_update", 8),
    10: _fact("master_data_written", 4),
    11: StatusVariables._invoker,
    12: StatusVariables._schemas,
    13: _number("microseconds", 3),
    16: _number("explicit_defaults_for_timestamp", 1),
    17: _fact("ddl_xid", 8),
    18: _number("default_collation_for_utf8mb4", 2),
    19: _number("sql_require_primary_key", 1),
    20: _number("default_table_encryption", 1),
    21: _fact("sql_foreign_keys", 1),  # who maintains foreign keys (MySQL 9.6+); only in statement format
    128: _number("microseconds", 3),  # from here on MariaDB's
    129: _fact("ddl_xid", 8),
    130: StatusVariables._alter,
    131: StatusVariables._set_collations,
}


def rows_query(text: bytes, size: int, begin: bytes, limit: int) -> str:
    """The text of the statement whose rows follow: ROWS_QUERY, and MariaDB's ANNOTATE_ROWS.

    MySQL's (`libs/mysql/binlog/event/rows_event.h`, `Rows_query_event`) begins with a byte that once was the length.
    MariaDB's (`sql/log_event.h`, `Annotate_rows_log_event`) is the text alone. Both have the session's character set,
    which MySQL's BEGIN names; MariaDB's does not, so its text is read as UTF-8. Invalid bytes are shown as `\\xe9`.

    Args:
        text: the text, or at least its first `limit` bytes.
        size: bytes of the whole text.
        begin: body of the QUERY event that began the transaction; b"" if there is none.
        limit: bytes to keep. A longer text is cut, with a note of its size.
    """
    charset = _charset(begin[QUERY_FIXED : QUERY_FIXED + int.from_bytes(begin[11:13], "little")])
    if size <= limit:
        return _decoded(text[:size], charset, 1)
    return f"{_decoded(text[:limit], charset, width(charset))} … ({limit} of {size} bytes)"


def _decoded(text: bytes, charset: str, widest: int) -> str:
    """Decodes text; up to `widest - 1` bytes at its end may be an incomplete character, which is left out."""
    for cut in range(widest):
        try:
            return decode(text[: len(text) - cut], charset)
        except ConnectorError:
            continue
    return text.decode("utf-8", "backslashreplace")


@lru_cache(maxsize=256)
def _charset(variables: bytes) -> str:
    """The character set of a text by its status variables."""
    state = StatusVariables("utf8mb4")
    state.read(Fields(variables))
    return state.charset
