"""A target's desk: what those may ask of it, and note there, who do not apply to it.

Everything stands in tables of the bookkeeping, so that whoever reaches the target reaches its applier, and nothing has
to listen on a port. A session of its own that claims nothing: an applier's commits and its token are not touched.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from connector.log.compact.net_changes import ANY
from connector.log.transaction.layout import TableName
from connector.targets.bookkeeping import EXCLUDED, excluded_from
from connector.targets.operations import Value
from connector.targets.target_schema import Excluded


class Session(Protocol):
    """A database session in autocommit."""

    prefix: str
    """What stands before the bookkeeping's names."""

    def run(self, sql: str, values: Sequence[Value]) -> list[tuple[object, ...]]:
        """Run one statement with a `?` for each value, which commits at once; its rows.

        Raises:
            TargetUnavailable: the target does not answer.
            TargetDiffers: there is no such table.
        """

    def has(self, table: str) -> bool:
        """Whether the bookkeeping has a table."""

    def close(self) -> None:
        """End it."""


@dataclass(frozen=True, slots=True)
class Request:
    """That a service's applier is to go offline.

    Args:
        asked_at: µs since 1970 UTC.
        asked_by: user@host.
        because: what whoever asked said.
        offline_at: when the applier did; None before.
        seqno: the last event then.
    """

    asked_at: int
    asked_by: str
    because: str
    offline_at: int | None = None
    seqno: int | None = None


@dataclass(frozen=True, slots=True)
class Inconsistent:
    """A table that is not known to be equal to the source's; `ANY` for what could not be told.

    Args:
        since: the event from which on.
    """

    schema: str
    table: str
    since: int
    because: str


class SignalTable:
    """See above.

    Args:
        session: with the target; closed with the desk.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._asks: bool | None = None  # whether there is a table to ask in

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask_offline(self, service: str, request: Request) -> None:
        """Ask the applier of a service to go offline; it looks about each second. An earlier request is replaced."""
        self._run(
            "INSERT INTO {thl_requests} (service, asked_at, asked_by, because) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (service) DO UPDATE SET asked_at = excluded.asked_at, asked_by = excluded.asked_by, "
            "because = excluded.because, offline_at = NULL, seqno = NULL",
            service, request.asked_at, request.asked_by, request.because,
        )  # fmt: skip

    def request(self, service: str) -> Request | None:
        """What was asked of a service's applier since it last began; None: nothing."""
        if self._asks is None:
            self._asks = self._session.has("thl_requests")
        if not self._asks:
            return None
        found = self._run(
            "SELECT asked_at, asked_by, because, offline_at, seqno FROM {thl_requests} WHERE service = ?", service
        )
        for asked_at, asked_by, because, offline_at, seqno in found:
            return Request(_number(asked_at), str(asked_by), str(because), _known(offline_at), _known(seqno))
        return None

    def forget_request(self, service: str) -> None:
        """An applier begins: what was asked of an earlier one is over."""
        if self.request(service) is not None:
            self._run("DELETE FROM {thl_requests} WHERE service = ?", service)

    def went_offline(self, service: str, at: int, seqno: int) -> None:
        """Note that the applier did as it was asked."""
        self._run("UPDATE {thl_requests} SET offline_at = ?, seqno = ? WHERE service = ?", at, seqno, service)

    def skipped(self, service: str) -> set[int]:
        """The events that were left out."""
        if not self._session.has("thl_skipped"):
            return set()
        return {_number(seqno) for (seqno,) in self._run("SELECT seqno FROM {thl_skipped} WHERE service = ?", service)}

    def inconsistent(self, service: str) -> list[Inconsistent]:
        """The tables that are not known to be equal to the source's, by name."""
        if not self._session.has("thl_inconsistent"):
            return []
        columns = "schema_name, table_name, since_seqno, because"
        return [
            Inconsistent(str(schema), str(table), _number(since), str(because))
            for schema, table, since, because in self._run(
                f"SELECT {columns} FROM {{thl_inconsistent}} WHERE service = ? ORDER BY 1, 2", service
            )
        ]

    def excluded(self, service: str) -> dict[TableName, Excluded]:
        """The tables that the applier goes on without."""
        if not self._session.has("thl_excluded"):
            return {}
        return excluded_from(
            self._run(f"SELECT {EXCLUDED} FROM {{thl_excluded}} WHERE service = ? ORDER BY 1, 2", service)
        )

    def found_equal(self, service: str, tables: Collection[str], seqno: int, *, every: bool) -> list[Inconsistent]:
        """Take away the marks of tables that were compared.

        Args:
            tables: `schema.table` of those that are equal.
            seqno: the target's last event when they were compared: marks of later ones stay.
            every: these are all the tables there are, so what could not be told is equal, too.

        Returns:
            What was taken away.
        """
        gone = [
            one
            for one in self.inconsistent(service)
            if one.since <= seqno and (f"{one.schema}.{one.table}" in tables or (every and one.table == ANY))
        ]
        for one in gone:
            self._run(
                "DELETE FROM {thl_inconsistent} WHERE service = ? AND schema_name = ? AND table_name = ? "
                "AND since_seqno = ?",
                service, one.schema, one.table, one.since,
            )  # fmt: skip
        return gone

    def close(self) -> None:
        """End the session."""
        self._session.close()

    def _run(self, sql: str, *values: Value) -> list[tuple[object, ...]]:
        return self._session.run(sql.replace("{", self._session.prefix).replace("}", ""), values)


def _number(value: object) -> int:
    return int(str(value))


def _known(value: object) -> int | None:
    return None if value is None else _number(value)
