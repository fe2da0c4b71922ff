"""Asks replicas of the source for their executed GTIDs. Each has its own session, opened on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from connector.config.source import Source
from connector.errors import PreflightError
from connector.log.gtid.mariadb import DomainPosition
from connector.log.gtid.source_gtids import Lacking, lacking
from connector.mysql.server.connection import Connection, connect, query, release, source_errors, unverified
from connector.mysql.server.mariadb_state import is_mariadb
from connector.mysql.server.source_state import gtid_executed

ROUND: Final = 0.5  # seconds of one wait on a replica
SILENCE: Final = 5.0  # seconds without an answer after which it counts as gone
WAITS_SINCE: Final = (5, 7, 5)  # MySQL's WAIT_FOR_EXECUTED_GTID_SET


def unverified_replicas(urls: Iterable[SecretStr], source: Source) -> Iterator[str]:
    """Sentences why others can read passwords of `publish.wait_for`; see `connection.unverified`."""
    return (why for url in urls if (why := unverified(_at(url.get_secret_value(), source))))


class Replica:
    """One replica. A method that fails closes the session.

    Args:
        url: `mysql://[user[:password]@]host[:port]`, from `publish.wait_for`.
        source: the replica's source, with the defaults of user, password and TLS.
    """

    def __init__(self, url: str, source: Source) -> None:
        self._at = _at(url, source)
        self._connection: Connection | None = None
        self._executed: str | None = None

    @property
    def name(self) -> str:
        """host:port."""
        return f"{self._at.host}:{self._at.port}"

    def missing(self, gtids: str) -> Lacking | None:
        """The GTIDs of a set that it had not executed at the last `ask`; None: there was none."""
        return None if self._executed is None else lacking(gtids, self._executed)

    def has(self, gtids: str) -> bool:
        """True if it is known to have executed a set."""
        return self._executed is not None and not lacking(gtids, self._executed)

    def ask(self, gtids: str) -> bool:
        """Waits until it has executed a set, at most ROUND seconds.

        Args:
            gtids: the set; "": only read what it has executed.

        Returns:
            True if it has executed the set.

        Raises:
            SourceUnavailable: it does not answer.
            PreflightError: it has no GTIDs, is too old to wait for GTIDs, or refuses the user.
            HistoriesDiffer: one of the two servers is a MariaDB, the other is not.
        """
        try:
            with source_errors(self._at, "a replica that is waited for"):
                self._connection = self._connection or self._opened()
                if gtids:
                    _wait(self._connection, gtids)
                self._executed = gtid_executed(self._connection)
        except BaseException:
            self.close()
            raise
        return self.has(gtids)

    def close(self) -> None:
        """Closes the session. May be repeated."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _opened(self) -> Connection:
        connection = connect(self._at, "a replica that is waited for", silence=SILENCE)
        try:
            _check(connection, self.name)
        except BaseException:
            connection.close()
            raise
        return connection


def _check(connection: Connection, name: str) -> None:
    if is_mariadb(connection):
        return
    if release(connection) < WAITS_SINCE:
        raise PreflightError(
            "publish.wait_for names a server that cannot wait for GTIDs: MySQL 5.7.5 or newer can", replica=name
        )
    if gtid_executed(connection) is None:
        raise PreflightError(
            "publish.wait_for names a server without GTIDs",
            hint="SET PERSIST enforce_gtid_consistency = ON; and gtid_mode step by step to ON",
            replica=name,
        )


def _wait(connection: Connection, gtids: str) -> None:
    """Waits on the server. Its answer is ignored: the executed GTIDs are read afterwards."""
    if is_mariadb(connection):
        lasts = ",".join(map(str, DomainPosition.parse(gtids)))  # one of each domain
        query(connection, "SELECT MASTER_GTID_WAIT(%s, %s)", (lasts, ROUND))
    else:
        query(connection, "SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)", (gtids, ROUND))


def _at(url: str, source: Source) -> Source:
    parts = urlsplit(url)
    overrides: dict[str, object] = {"host": parts.hostname or "", "port": parts.port or 3306}
    if parts.username is not None:
        overrides |= {"user": unquote(parts.username), "password": SecretStr(unquote(parts.password or ""))}
    return source.model_copy(update=overrides)
