"""SQL sessions with the source.

pymysql's errors become ConnectorErrors: a server that is gone can be tried again, a refused user cannot.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import pymysql
from pymysql.constants import CR, ER
from pymysql.cursors import DictCursor

from connector.addresses import on_this_machine
from connector.config.source import Source
from connector.errors import ConfigError, ConnectorError, MissingPrivilege, PreflightError, SourceUnavailable
from connector.mysql_tls import TlsFileError, tls_context

Connection: TypeAlias = "pymysql.Connection[Any]"
Row = dict[str, Any]

CONNECT_TIMEOUT = 10  # seconds; also the limit for each answer until the session is open
THE_SOURCE = "the source"
LOCK_WAIT = 5  # seconds for a lock on a table's definition, if commits on the source wait for this producer
# From sql_select_limit on, each may be set for all sessions of the server, and would leave rows out, refuse to read
# large tables, or end what takes long. MySQL has the first time limit since 5.7.8, MariaDB the other; each skips the
# other's.
INIT: Final = (
    "SET SESSION time_zone = '+00:00', sql_mode = '', sql_quote_show_create = 1,"
    " sql_select_limit = 18446744073709551615, sql_big_selects = 1"
    " /*!50708 , max_execution_time = 0 */ /*M!100101 , max_statement_time = 0 */"
)
# A dead server is noticed after a minute; the time of an answer is not limited.
KEEPALIVE = {
    socket.TCP_KEEPIDLE: 30,
    socket.TCP_KEEPINTVL: 10,
    socket.TCP_KEEPCNT: 3,
    socket.TCP_USER_TIMEOUT: 60_000,
}
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
        0,  # pymysql: the connection object is closed
        3169,  # ER_SESSION_WAS_KILLED
        4031,  # ER_CLIENT_INTERACTION_TIMEOUT
    }
)


def connect(
    source: Source, who: str = THE_SOURCE, *, silence: float | None = None, patience: float = CONNECT_TIMEOUT
) -> Connection:
    """Opens a session with UTC, utf8mb4 and an empty sql_mode, independent of the server's defaults.

    Args:
        source: the server.
        who: the server's name in errors.
        silence: seconds without an answer after which the server counts as gone; None: unlimited.
        patience: the same until the session is open, if `silence` is unlimited.

    Raises:
        SourceUnavailable: the server does not answer in time.
        PreflightError: it refuses the user.
    """
    patience = patience if silence is None else silence
    with source_errors(source, who):
        connection = pymysql.connect(
            host=source.host,
            port=source.port,
            user=source.user,
            password=source.password.get_secret_value().encode(),  # pymysql encodes a str as Latin 1
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=patience,
            read_timeout=patience,
            write_timeout=silence,
            cursorclass=DictCursor,
            program_name="thl-connector",
            init_command=INIT,
            ssl=_tls(source),
            ssl_disabled=not source.tls,
        )
        connection._read_timeout = silence  # type: ignore[attr-defined]
        for option, value in KEEPALIVE.items():
            connection._sock.setsockopt(socket.IPPROTO_TCP, option, value)  # type: ignore[attr-defined]
        return connection


@contextmanager
def session(source: Source) -> Iterator[Connection]:
    """Opens a session whose errors become ConnectorErrors, and closes it.

    Raises:
        SourceUnavailable, PreflightError, ConnectorError: see `source_errors`.
    """
    connection = connect(source)
    try:
        with source_errors(source):
            if source.semi_sync:  # the statement that has the lock may wait for the producer, which waits here
                query(connection, "SET SESSION lock_wait_timeout = %s", (LOCK_WAIT,))
            yield connection
    finally:
        connection.close()


def query(connection: Connection, sql: str, args: Sequence[object] = ()) -> list[Row]:
    """Executes a statement and returns its rows as dictionaries."""
    with connection.cursor() as cursor:
        cursor.execute(sql, args or None)
        rows = list(cursor.fetchall())
        if "information_schema" in sql and cursor.warning_count:
            _refuse_missing_tables(cursor)
        return rows


def _refuse_missing_tables(cursor: DictCursor) -> None:
    """Raise the error of a table that MariaDB left out of information_schema because it was locked for too long."""
    cursor.execute("SHOW WARNINGS")
    for row in cursor.fetchall():
        if int(row["Code"]) == ER.LOCK_WAIT_TIMEOUT:
            raise pymysql.OperationalError(ER.LOCK_WAIT_TIMEOUT, row["Message"])


def release(connection: Connection) -> tuple[int, ...]:
    """The first three numbers of the server's version."""
    version = str(query(connection, "SELECT @@version AS version")[0]["version"])
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def query_one(connection: Connection, sql: str, args: Sequence[object] = ()) -> Row | None:
    """Executes a statement and returns its first row, or None."""
    rows = query(connection, sql, args)
    return rows[0] if rows else None


@contextmanager
def source_errors(source: Source, who: str = THE_SOURCE) -> Iterator[None]:
    """Turns pymysql's errors into ConnectorErrors.

    Raises:
        SourceUnavailable: the server is gone or has too many connections.
        PreflightError: it refuses the user, or the user lacks a privilege.
        ConnectorError: any other error of the server.
    """
    where = {"source": f"{source.host}:{source.port}", "user": source.user}
    try:
        yield
    except pymysql.MySQLError as error:
        code, text = _code_and_text(error)
        unverified_certificate = getattr(error, "original_exception", None)
        if isinstance(unverified_certificate, ssl.SSLCertVerificationError):
            raise PreflightError(
                f"{who} cannot be trusted: {text}",
                hint=_certificate_hint(source),
                verify_code=unverified_certificate.verify_code,
                **where,
            ) from error
        if code == CR.CR_SSL_CONNECTION_ERROR:
            raise PreflightError(
                f"{who} offers no TLS, and source.tls asks for it: nothing was sent",
                hint="does a proxy between remove TLS? else configure a certificate on the server",
                option="source.tls",
                **where,
            ) from error
        if code in REFUSED:
            raise PreflightError(
                f"{who} refuses the user: {text}", hint=_user_hint(source), code=code, **where
            ) from error
        if code in DENIED:
            raise MissingPrivilege(
                f"the user lacks a privilege: {text}",
                hint=f"GRANT … TO {account(source.user)}; docs/security.md lists the least rights",
                **where,
            ) from error
        if code == ER.LOCK_WAIT_TIMEOUT and source.semi_sync:
            raise SourceUnavailable(
                f"{who} has locked a table for too long: {text}",
                hint="a DDL statement there may wait for this producer's acknowledgement, and this producer for the "
                "statement: SET GLOBAL rpl_semi_sync_master_enabled = OFF; and at once ON again: what waits then no "
                "longer waits",
                **where,
            ) from error
        if code in GONE or isinstance(error, pymysql.InterfaceError):
            raise SourceUnavailable(f"{who} does not answer: {text}", hint=_down_hint(who), **where) from error
        if isinstance(error, pymysql.InternalError) and code < 0:
            raise PreflightError(
                f"{who} does not speak MySQL's protocol: {text}", hint="check source.host and source.port", **where
            ) from error
        raise ConnectorError(f"{who} refuses: {text}", code=code, **where) from error
    except OSError as error:
        raise SourceUnavailable(f"{who} does not answer: {error}", hint=_down_hint(who), **where) from error
    except UnicodeError as error:
        raise ConfigError(f"{who} has no host name that can be looked up: {error}", **where) from error


def unverified(source: Source) -> str:
    """A sentence why others can read the password on its way to the server; "": they cannot, or there is none."""
    if not source.password.get_secret_value() or on_this_machine(source.host):
        return ""
    where = f"the password for {source.user} at {source.host}:{source.port}"
    if not source.tls:
        return f"{where} crosses the network without TLS: source.tls"
    if source.tls_verify == "none":
        return f"{where} is sent to an unverified server: source.tls_verify is none"
    return ""


def account(user: str) -> str:
    """A user as an SQL account name, from any host."""
    return "'{}'@'%'".format(user.replace("\\", "\\\\").replace("'", "''"))


def _code_and_text(error: pymysql.MySQLError) -> tuple[int, str]:
    match error.args:
        case (int(code), text, *_):
            return code, str(text)
        case _:
            return -1, str(error)


def _down_hint(who: str) -> str:
    return "is it running, and are source.host and source.port right?" if who == THE_SOURCE else ""


def _user_hint(source: Source) -> str:
    return (
        f"is source.password right? Else, where there is no such user: CREATE USER {account(source.user)} IDENTIFIED "
        f"BY '…'; GRANT REPLICATION SLAVE, REPLICATION CLIENT, FLUSH_TABLES, XA_RECOVER_ADMIN, SELECT ON *.* TO "
        f"{account(source.user)}; in MariaDB BINLOG MONITOR for REPLICATION CLIENT; there and before MySQL 8.0.23 "
        "RELOAD for FLUSH_TABLES; there and before MySQL 8.0 no XA_RECOVER_ADMIN"
    )


def _tls(source: Source) -> ssl.SSLContext | None:
    """The TLS context for the server; None: TLS is off.

    Raises:
        ConfigError: a file is missing or invalid.
    """
    if not source.tls:
        return None
    try:
        return tls_context(source.tls_verify, source.tls_ca, source.tls_cert, source.tls_key)
    except TlsFileError as error:
        field, file = ("tls_ca", source.tls_ca) if error.authority else ("tls_cert and source.tls_key", source.tls_cert)
        raise ConfigError(f"a file for TLS cannot be used: {error}", option=f"source.{field}", file=file) from error


def _certificate_hint(source: Source) -> str:
    authority = "source.tls_ca" if source.tls_ca is None else f"{source.tls_ca} (source.tls_ca)"
    return (
        f"does {authority} hold the authority that signed the server's certificate, and does that name {source.host}? "
        "source.tls_verify: ca does not check the name; source.tls_verify: false checks nothing: anyone between can "
        "read the password"
    )
