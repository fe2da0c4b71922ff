"""The session that executes printed SQL: sets what a statement or rows need, where it differs from what is set.

Text is UTF-8, except a statement with other characters than ASCII whose client had another character set: it is
printed in that one, because literals with an introducer have its bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Final

from connector.errors import Unsupported, ValueNotRepresentable
from connector.inspect.formats.session_values import set_before
from connector.inspect.formats.sql_literals import quoted, text
from connector.log.transaction import statement_options as replay
from connector.mysql.values import charsets

# Session variables whose values are numbers, or words without quotes.
_PLAIN: Final = frozenset(
    {
        "auto_increment_increment", "auto_increment_offset", "collation_connection", "collation_database",
        "collation_server", "default_collation_for_utf8mb4", "default_table_encryption",
        "explicit_defaults_for_timestamp", "foreign_key_checks", "lc_time_names", "sql_auto_is_null", "sql_mode",
        "sql_require_primary_key", "timestamp", "unique_checks", replay.CHARSET, replay.PSEUDO_THREAD_ID,
    }
)  # fmt: skip
# Facts about a statement, and what BEGIN, COMMIT, USE and the statement itself express.
_NOT_SET: Final = frozenset(
    {
        *("autocommit", "catalog", "invoker", "suppress_use"),
        *(replay.CHARSET_ID, replay.SCHEMA_CHARSET, replay.TABLE_EXISTED),
        *(replay.TEXT, replay.DIALECT, replay.SYSTEM_ZONE),
    }
)
# What a statement that does not name it had by default.
_DEFAULTS: Final = {
    "auto_increment_increment": "1",
    "auto_increment_offset": "1",
    "lc_time_names": "0",
    "time_zone": "DEFAULT",
}
# Images of rows hold what MySQL stores: dates with zeros, an AUTO_INCREMENT of 0, every row that cascades have changed.
_ROWS: Final = {
    replay.CHARSET: "utf8mb4",
    "collation_connection": "utf8mb4_bin",
    "foreign_key_checks": "0",
    "sql_mode": "'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'",
    "time_zone": "'+00:00'",
}
_CODECS: Final = {
    "big5": "big5", "cp932": "cp932", "eucjpms": "euc_jp", "euckr": "euc_kr", "gb18030": "gb18030", "gb2312": "gb2312",
    "gbk": "gbk", "sjis": "shift_jis", "ujis": "euc_jp",
}  # fmt: skip


class SqlSession:
    """The state of the session after the SQL that was printed so far."""

    def __init__(self) -> None:
        self._set: dict[str, str] = {}
        self._schema = ""

    def for_rows(self) -> Iterator[bytes]:
        """The statements that must be executed before changes of rows."""
        yield from self._changed(_ROWS)

    def for_statement(self, schema: str, options: Mapping[str, str]) -> Iterator[bytes]:
        """The statements that must be executed before a statement.

        Args:
            schema: its default schema.
            options: its options, as the log has them.

        Raises:
            Unsupported: it reads a file.
        """
        if replay.LOAD_FILE in options:
            raise Unsupported(
                "LOAD DATA was logged as a statement: its file cannot be printed as SQL",
                hint="print it with --format json, whose options have the file's blocks",
                file=options[replay.LOAD_FILE],
            )
        if schema and schema != self._schema and "suppress_use" not in options:
            self._schema = schema
            yield from self._in_utf8(f"USE {quoted(schema)};")
        for line in set_before(options):
            yield from self._in_utf8(f"{line};")
        wanted, unknown = dict(_DEFAULTS), []
        for name, value in options.items():
            if name == "time_zone":
                wanted[name] = text(value)
            elif name in _PLAIN:
                wanted[name] = value
            elif name not in _NOT_SET and not name.startswith(replay.VARIABLE) and name not in replay.OF_NEXT:
                unknown.append(f"{name} = {value}".replace("*/", "* /"))
        if unknown:
            yield f"/* not set: {', '.join(unknown)} */".encode()
        yield from self._changed(wanted)

    def forget_schema(self) -> None:
        """A definition may have dropped the default schema: it is set again before the next statement."""
        self._schema = ""

    def _in_utf8(self, line: str) -> Iterator[bytes]:
        """A line that this module adds, whatever character set the last statement's client had."""
        if not line.isascii():
            yield from self._changed({replay.CHARSET: _ROWS[replay.CHARSET]})
        yield line.encode()

    def _changed(self, wanted: Mapping[str, str]) -> Iterator[bytes]:
        changed = {name: value for name, value in wanted.items() if self._set.get(name) != value}
        self._set |= changed
        if changed:
            yield f"SET {', '.join(f'{name} = {value}' for name, value in changed.items())};".encode()


def statement_bytes(sql: str, options: Mapping[str, str]) -> bytes:
    """The text of a statement in the character set of its client.

    Raises:
        Unsupported: the character set has no such text.
    """
    charset = options.get(replay.CHARSET, "utf8mb4")
    if replay.TEXT in options:
        return base64.b64decode(options[replay.TEXT], validate=True)
    if charset in charsets.UTF8 or charset == charsets.BINARY or sql.isascii():
        return sql.encode()
    alphabet = charsets.alphabet(charset)
    try:
        if alphabet:
            return bytes(map({char: byte for byte, char in reversed([*enumerate(alphabet)])}.__getitem__, sql))
        found = sql.encode(_CODECS[charset])
        if charsets.decode(found, charset) == sql:
            return found
    except (KeyError, UnicodeEncodeError, ValueNotRepresentable):
        pass
    raise Unsupported(
        f"a statement cannot be printed in {charset}, the character set of its client",
        hint="print it with --format tungsten or json",
        sql=sql[:200],
    )
