"""Ordinary SQL connections to the source, and its answers: what is not the dump of the binary log.

pymysql's errors become ours here: a server that is gone can be tried again, a refused user cannot.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import pymysql
from pymysql.constants import CR, ER
from pymysql.cursors import DictCursor

from connector.config import Source
from connector.errors import ConnectorError, PreflightError, SourceUnavailable

Connection: TypeAlias = "pymysql.Connection[Any]"
Row = dict[str, Any]

CONNECT_TIMEOUT = 10  # seconds, also for each answer until the session is open
THE_SOURCE = "the source"
# A server that is gone without a word is noticed after a minute; how long it may work on an answer is not limited.
KEEPALIVE = {
    socket.TCP_KEEPIDLE: 30,
    socket.TCP_KEEPINTVL: 10,
    socket.TCP_KEEPCNT: 3,
    socket.TCP_USER_TIMEOUT: 60_000,
}
CAST_AS_DOUBLE = (8, 0, 17)
REFUSED = frozenset({ER.ACCESS_DENIED_ERROR, ER.DBACCESS_DENIED_ERROR, 1698, 1820, 3118})
DENIED = frozenset({ER.SPECIFIC_ACCESS_DENIED_ERROR, ER.TABLEACCESS_DENIED_ERROR, ER.COLUMNACCESS_DENIED_ERROR})
GONE = frozenset(
    {
        ER.CON_COUNT_ERROR,
        ER.SERVER_SHUTDOWN,
        ER.NORMAL_SHUTDOWN,
        CR.CR_CONNECTION_ERROR,
        CR.CR_CONN_HOST_ERROR,
        CR.CR_SERVER_GONE_ERROR,
        CR.CR_SERVER_LOST,
        0,  # pymysql's own: the connection object is closed already
        3169,  # ER_SESSION_WAS_KILLED
        4031,  # ER_CLIENT_INTERACTION_TIMEOUT
    }
)


def connect(source: Source, who: str = THE_SOURCE, *, silence: float | None = None) -> Connection:
    """Open a session with UTC, utf8mb4 and an empty sql_mode, whatever the server's defaults are.

    Args:
        source: the server.
        who: what errors call it.
        silence: seconds without an answer after which it counts as gone; None: for ever.

    Raises:
        SourceUnavailable: the server does not answer in time.
        PreflightError: it refuses the user.
    """
    patience = CONNECT_TIMEOUT if silence is None else silence
    with speaking_to(source, who):
        connection = pymysql.connect(
            host=source.host,
            port=source.port,
            user=source.user,
            password=source.password.get_secret_value(),
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=patience,
            read_timeout=patience,
            write_timeout=silence,
            cursorclass=DictCursor,
            program_name="thl-connector",
            init_command="SET SESSION time_zone = '+00:00', sql_mode = '', sql_quote_show_create = 1",
            ssl=_tls(source),
            ssl_disabled=not source.tls,
        )
        connection._read_timeout = silence  # type: ignore[attr-defined]
        for option, value in KEEPALIVE.items():
            connection._sock.setsockopt(socket.IPPROTO_TCP, option, value)  # type: ignore[attr-defined]
        return connection


@contextmanager
def session(source: Source) -> Iterator[Connection]:
    """A session for some statements, whose errors become ours.

    Raises:
        SourceUnavailable, PreflightError, ConnectorError: as `speaking_to`.
    """
    connection = connect(source)
    try:
        with speaking_to(source):
            yield connection
    finally:
        connection.close()


def query(connection: Connection, sql: str, args: Sequence[object] = ()) -> list[Row]:
    """The rows that a statement gives, as dictionaries."""
    with connection.cursor() as cursor:
        cursor.execute(sql, args or None)
        return list(cursor.fetchall())


def release(connection: Connection) -> tuple[int, ...]:
    """The first three numbers of the server's version."""
    version = str(query(connection, "SELECT @@version AS version")[0]["version"])
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def as_double(connection: Connection) -> str:
    """An expression, to be formatted with a column, that gives a FLOAT or DOUBLE with all its digits."""
    mariadb = "mariadb" in str(connection.get_server_info()).lower()  # type: ignore[no-untyped-call]
    return "CAST({} AS DOUBLE)" if mariadb or release(connection) >= CAST_AS_DOUBLE else "{} * 1e0"


def query_one(connection: Connection, sql: str, args: Sequence[object] = ()) -> Row | None:
    """The first row that a statement gives."""
    rows = query(connection, sql, args)
    return rows[0] if rows else None


@contextmanager
def speaking_to(source: Source, who: str = THE_SOURCE) -> Iterator[None]:
    """Turn pymysql's errors into ours.

    Raises:
        SourceUnavailable: the server is gone or has no room.
        PreflightError: it refuses the user, or the user may not do what is asked.
        ConnectorError: any other refusal of the server.
    """
    where = {"source": f"{source.host}:{source.port}", "user": source.user}
    try:
        yield
    except pymysql.MySQLError as error:
        code, text = _code_and_text(error)
        if code in REFUSED:
            raise PreflightError(f"{who} refuses the user: {text}", hint=_user_hint(source), **where) from error
        if code in DENIED:
            raise PreflightError(
                f"the user lacks a privilege: {text}",
                hint=f"GRANT … TO {account(source.user)}; docs/configuration.md lists the least set",
                **where,
            ) from error
        if code in GONE or isinstance(error, pymysql.InterfaceError):
            raise SourceUnavailable(f"{who} does not answer: {text}", **where) from error
        raise ConnectorError(f"{who} refuses: {text}", code=code, **where) from error
    except OSError as error:
        raise SourceUnavailable(f"{who} does not answer: {error}", **where) from error


def account(user: str) -> str:
    """The user as an account name of SQL, from any host."""
    return "'{}'@'%'".format(user.replace("\\", "\\\\").replace("'", "''"))


def quoted(name: str) -> str:
    """An identifier, quoted for SQL."""
    return "`{}`".format(name.replace("`", "``"))


def _code_and_text(error: pymysql.MySQLError) -> tuple[int, str]:
    match error.args:
        case (int(code), text, *_):
            return code, str(text)
        case _:
            return -1, str(error)


def _user_hint(source: Source) -> str:
    return (
        f"CREATE USER {account(source.user)} IDENTIFIED BY '…'; "
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {account(source.user)};"
    )


def _tls(source: Source) -> ssl.SSLContext | None:
    if not source.tls:
        return None
    context = ssl.create_default_context(cafile=source.tls_ca)
    if source.tls_ca is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
