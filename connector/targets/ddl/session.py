"""The session that ran a DDL statement; it gives literals and CURRENT_TIMESTAMP their meaning."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta, timezone, tzinfo
from re import fullmatch
from typing import Final
from zoneinfo import ZoneInfo

from connector.ddl.mariadb import implicit_timestamps, of_mariadb
from connector.ddl.syntax.tokens import check_spaces, sql_modes
from connector.errors import Unsupported
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement
from connector.mysql.values.collations import charset_of

_EXISTED: Final = {"1": True, "0": False}


@dataclass(frozen=True, slots=True)
class Session:
    """The known settings of the session.

    Args:
        micros: the statement's time, µs since 1970 UTC.
        zone: its `time_zone`; "" if not known.
        modes: the modes of its `sql_mode` that affect literals.
        client: the character set of the statement's text; "" if not known.
        connection: the character set of its string literals; "" if not known.
        mariadb: true if MariaDB ran it.
        implicit: true if a TIMESTAMP has an implicit default: explicit_defaults_for_timestamp=OFF.
        schema_charset: the character set of a created table whose definition names none; "" if the log does not have
            it: it names one, or an earlier version of the producer, or one that does not know the schema, wrote it.
        table_existed: whether CREATE TABLE IF NOT EXISTS found a table; None if the log does not tell, as above.
    """

    micros: int
    zone: str = ""
    modes: frozenset[str] = frozenset()
    client: str = ""
    connection: str = ""
    mariadb: bool = False
    implicit: bool = False
    schema_charset: str = ""
    table_existed: bool | None = None


def session_of(statement: Statement, commit_time: int) -> Session:
    """The session of a statement, from its options.

    Args:
        statement: of the log.
        commit_time: µs since 1970 UTC: the time of the statement unless its options have it.

    Raises:
        Unsupported: this session has other spaces in its text than the parser reads.
    """
    check_spaces(statement)
    options = statement.options
    return Session(
        micros=_micros(options.get("timestamp"), commit_time),
        zone=options.get("time_zone", ""),
        modes=frozenset(sql_modes(options.get("sql_mode", ""))),
        client=options.get("character_set_client", ""),
        connection=_charset(options.get("collation_connection", "")),
        mariadb=of_mariadb(statement),
        implicit=implicit_timestamps(statement),
        schema_charset=options.get(replay.SCHEMA_CHARSET, ""),
        table_existed=_EXISTED.get(options.get(replay.TABLE_EXISTED, "")),
    )


def zone_of(name: str) -> tzinfo | None:
    """A session's time zone; None if it is not known: SYSTEM."""
    if match := fullmatch(r"([+-])(\d{1,2}):(\d\d)", name):
        offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
        return timezone(-offset if match[1] == "-" else offset)
    if name in ("", "SYSTEM"):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def _micros(timestamp: str | None, commit_time: int) -> int:
    """The session's `timestamp`, seconds with or without a fraction, in µs."""
    if not timestamp:
        return commit_time
    seconds, _, fraction = timestamp.partition(".")
    return int(seconds) * 1_000_000 + int(fraction.ljust(6, "0")[:6])


def _charset(collation: str) -> str:
    try:
        return charset_of(int(collation)) if collation else ""
    except Unsupported:
        return ""
