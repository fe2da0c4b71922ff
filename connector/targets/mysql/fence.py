"""Fencing: one applier session per service holds a named lock; a newer applier kills it.

A session holds the lock as long as it lives. When the newer applier has it, the server has rolled back or completed
whatever the older session did, and executes nothing else for it: no DDL either, which no token in a table could keep
from being executed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pymysql
from pydantic import SecretStr
from pymysql.constants import ER

from connector.errors import ConnectorError, MissingPrivilege, TargetUnavailable
from connector.targets import bookkeeping
from connector.targets.mysql.server.connection import LOCK_SECONDS, ServerSession
from connector.targets.mysql.server.errors import code_of, connector_error, is_lost
from connector.targets.mysql.sql.literals import literal
from connector.targets.mysql.sql.names import text_literal

_AT_ONCE: Final = 2  # seconds for a killed session to end, before it is killed again


def _lock(service: str) -> str:
    """The expression of the name of a service's lock: at most 64 characters, without case."""
    return f"CONCAT('thl:', LEFT(SHA2({text_literal(service)}, 256), 40))"


def applier_number(session: ServerSession, service: str) -> int | None:
    """The number of the session of a service's applier; None: there is none."""
    ((number,),) = session.rows(f"SELECT IS_USED_LOCK({_lock(service)})")
    return None if number is None else int(number)


def take_over(session: ServerSession, service: str) -> None:
    """End the session of the older applier, and keep others from being one.

    Raises:
        MissingPrivilege: it is another user's.
        TargetUnavailable: it does not end: a statement of it is being rolled back.
    """
    for _ in range(LOCK_SECONDS // _AT_ONCE):
        older = applier_number(session, service)
        if older is not None and older != session.number:
            _end(session, older, service)
        if session.rows(f"SELECT GET_LOCK({_lock(service)}, {_AT_ONCE})") == [(1,)]:
            return
    raise TargetUnavailable(
        "the session of the older applier does not end",
        hint="the server may be rolling back a large transaction or a DDL statement: SHOW PROCESSLIST",
        service=service,
    )


def _end(session: ServerSession, number: int, service: str) -> None:
    try:
        session.query(f"KILL {number}")
    except pymysql.MySQLError as error:
        if code_of(error) == ER.KILL_DENIED_ERROR:
            raise MissingPrivilege(
                "another user's applier has claimed the target, and this user may not end its session",
                hint="use the same user, stop that applier, or GRANT CONNECTION_ADMIN ON *.* TO this user",
                service=service,
                session=number,
            ) from error
        if code_of(error) != ER.NO_SUCH_THREAD:
            raise


@contextmanager
def translated_or_fenced(url: SecretStr, service: str, token: int) -> Iterator[None]:
    """Raise what an applier's session raises as an error of `connector.errors`.

    Args:
        url: of the target.
        service: the service.
        token: of the applier's claim; 0: it has none yet.

    Raises:
        Fenced: the session has ended, and a newer applier has claimed the target.
    """
    try:
        yield
    except (pymysql.MySQLError, OSError) as error:
        if is_lost(error) and _is_fenced(url, service, token):
            raise bookkeeping.fenced(service, token) from error
        raise connector_error(error) from error
    except TargetUnavailable as error:
        if is_lost(error.__cause__) and _is_fenced(url, service, token):
            raise bookkeeping.fenced(service, token) from error
        raise


def check_token(session: ServerSession, service: str, token: int) -> None:
    """Check that no newer applier has claimed the target.

    Raises:
        Fenced: one has.
    """
    if token_of(session, service) != token:
        raise bookkeeping.fenced(service, token)


def token_of(session: ServerSession, service: str) -> int | None:
    """The token of the applier that claimed the target last; None: the service has no position there."""
    found = session.rows(f"SELECT token FROM thl.thl_position WHERE service = {literal(service)}")
    return int(found[0][0]) if found else None


def _is_fenced(url: SecretStr, service: str, token: int) -> bool:
    """Ask the server, in a new session, whether a newer applier has claimed the target; False if it does not answer."""
    if not token:
        return False
    with suppress(ConnectorError, pymysql.MySQLError, OSError):
        session = ServerSession(url.get_secret_value(), "thl")
        try:
            return token_of(session, service) != token
        finally:
            session.close()
    return False
