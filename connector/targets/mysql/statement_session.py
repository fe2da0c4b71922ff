"""The session of a change that was logged as a statement: its text, its user variables, the assignments of its options.

What the log does not have of an option had its default at the source. What no log has is the target's own:
group_concat_max_len, div_precision_increment, default_week_format, max_sort_length, block_encryption_mode, and
explicit_defaults_for_timestamp of most changes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Final

from connector.ddl.syntax.tokens import quoted
from connector.errors import Unsupported
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement
from connector.mysql.values.charsets import UTF8
from connector.mysql.values.collations import charset_of, collation_name
from connector.mysql.values.session_names import sql_mode_names
from connector.targets.ddl.characters import encoded
from connector.targets.mysql.ddl.source_ddl import MODES
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.sql.names import text_literal

_DEFAULTS: Final = {"auto_increment_increment": "1", "auto_increment_offset": "1", "lc_time_names": "0"}
"""The values of options that the log has only where they are others."""

_NUMBERS: Final = (
    *("foreign_key_checks", "unique_checks", "sql_auto_is_null", *_DEFAULTS),
    *("collation_connection", "collation_server", "collation_database"),
    *(replay.LAST_INSERT_ID, replay.INSERT_ID, replay.RAND_SEED1, replay.RAND_SEED2),
)
_SYSTEM: Final = "SYSTEM"


def text_of(statement: Statement, sql: str | None = None) -> bytes:
    """The text of a statement in the character set of its session.

    Args:
        statement: the statement.
        sql: the text, if it is not the statement's own.

    Raises:
        Unsupported: its bytes are not known.
    """
    if replay.TEXT in statement.options:
        if sql is not None:
            raise Unsupported("a statement that reads a file has bytes that its character set does not define")
        return base64.b64decode(statement.options[replay.TEXT], validate=True)
    sql = statement.sql if sql is None else sql
    charset = statement.options[replay.CHARSET]
    if sql.isascii() or charset in UTF8:
        return sql.encode()
    found = encoded(sql, charset)
    if found is None:
        raise Unsupported(f"the bytes of a statement are not known: {charset} has several for a character of its text")
    return found


def variables_of(statement: Statement) -> list[str]:
    """The assignments of the user variables that a statement reads, for a session in utf8mb4.

    The log has no type of one that is NULL, and a variable keeps its last one: it gets that of a text of the statement.
    """
    collation = int(statement.options["collation_connection"])
    text = f"_{charset_of(collation)} '' COLLATE {collation_name(collation)}"
    found: list[str] = []
    for option, value in statement.options.items():
        if option.startswith(replay.VARIABLE):
            variable = f"@{quoted(option.removeprefix(replay.VARIABLE))}"
            found += [f"{variable} = {one}" for one in ((text, value) if value == "NULL" else (value,))]
    return found


def settings_of(statement: Statement, session: ServerSession) -> tuple[str, ...]:
    """The assignments that make a session that of a statement; `character_set_client` is the last.

    Raises:
        Unsupported: the target does not have the value of an option.
    """
    return tuple(_settings(statement, session))


def _settings(statement: Statement, session: ServerSession) -> Iterator[str]:
    options = {**_DEFAULTS, **statement.options}
    yield f"sql_mode = {text_literal(','.join(_modes(options['sql_mode'])))}"
    yield f"timestamp = {options['timestamp']}"
    yield "group_concat_max_len = DEFAULT"  # the applier's own is larger
    if "time_zone" in options:
        yield f"time_zone = {text_literal(_zone(options['time_zone'], options.get(replay.SYSTEM_ZONE, ''), session))}"
    for name in _NUMBERS:
        if name in options:
            yield f"{name} = {int(options[name])}"
    explicit = options.get("explicit_defaults_for_timestamp")
    if explicit is not None and int(explicit) != int(session.explicit_timestamps):  # fixed within a transaction
        raise Unsupported(f"a statement ran with explicit_defaults_for_timestamp = {explicit}; the target has another")
    collation = options.get("default_collation_for_utf8mb4")
    if collation is not None and int(collation) != session.utf8mb4_collation:
        yield f"default_collation_for_utf8mb4 = {int(collation)}"
    yield f"character_set_client = {options[replay.CHARSET]}"


def _modes(logged: str) -> Iterator[str]:
    """The modes that change the effect of a statement. The others refuse statements; this one was not refused."""
    names = sql_mode_names(int(logged)).split(",")
    if unknown := [name for name in names if name.isdecimal()]:
        raise Unsupported(f"the sql_mode of a statement has unknown modes: {', '.join(unknown)}")
    return (name for name in names if name in MODES)


def _zone(zone: str, system: str, session: ServerSession) -> str:
    if zone != _SYSTEM:
        return zone
    ((own,),) = session.rows("SELECT @@system_time_zone")
    if system != own:
        raise Unsupported(
            f"a statement depends on the source's system time zone, {system or 'which the log does not have'}; the "
            f"target's is {own}",
            hint="start the target's server with the source's TZ, or SET GLOBAL time_zone = '+00:00' on the source",
        )
    return _SYSTEM
