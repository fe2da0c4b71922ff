"""The signal tables of a target: requests to its applier, and marks on tables, for other commands than `thl apply`.

Requests and marks are rows of the bookkeeping tables, so every user of the target can reach its applier and the applier
needs no port. The session claims nothing: it does not affect the applier's commits or its token.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, Self

from connector.log.compact.net_changes import ANY
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import Intent, TargetPosition
from connector.targets.bookkeeping import (
    EXCLUDED,
    LOADING,
    POSITION,
    excluded_from,
    intent_from,
    intent_query,
    loading_from,
    position_from,
)
from connector.targets.operations import Value
from connector.targets.target_schema import Excluded, Loading


class SignalSession(Protocol):
    """A database session in autocommit."""

    prefix: str
    """The prefix of the bookkeeping tables' names."""

    def run(self, sql: str, values: Sequence[Value]) -> list[tuple[object, ...]]:
        """Run one statement with a `?` for each value, commit it, and return its rows.

        Raises:
            TargetUnavailable: the target does not answer.
            TargetDiffers: the table does not exist.
        """

    def has(self, table: str) -> bool:
        """True if the bookkeeping has this table."""

    def close(self) -> None:
        """End the session."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a service's applier to go offline.

    Args:
        asked_at: µs since 1970 UTC.
        asked_by: user@host.
        reason: the reason that the user gave.
        offline_at: the time at which the applier went offline, µs since 1970 UTC; None before.
        seqno: the last event that it applied; None before.
    """

    asked_at: int
    asked_by: str
    reason: str
    offline_at: int | None = None
    seqno: int | None = None


@dataclass(frozen=True, slots=True)
class Inconsistent:
    """A table that may differ from the source's; `ANY` stands for unknown tables.

    Args:
        since: the first event that the table lacks.
    """

    schema: str
    table: str
    since: int
    reason: str


class SignalTable:
    """Reads and writes the signal tables of a target.

    Args:
        session: with the target; `close` ends it.
    """

    def __init__(self, session: SignalSession) -> None:
        self._session = session
        self._has_requests: bool | None = None  # None: not checked yet

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask_offline(self, service: str, request: Request) -> None:
        """Ask the applier of a service to go offline. It checks about once a second. Replaces an earlier request."""
        # In SQL that each target understands: an upsert is another in each.
        self._run("DELETE FROM {thl_requests} WHERE service = ?", service)
        self._run(
            "INSERT INTO {thl_requests} (service, asked_at, asked_by, because) VALUES (?, ?, ?, ?)",
            service, request.asked_at, request.asked_by, request.reason,
        )  # fmt: skip

    def request(self, service: str) -> Request | None:
        """The request to a service's applier since its last start; None if there is none."""
        if self._has_requests is None:
            self._has_requests = self._session.has("thl_requests")
        if not self._has_requests:
            return None
        found = self._run(
            "SELECT asked_at, asked_by, because, offline_at, seqno FROM {thl_requests} WHERE service = ?", service
        )
        for asked_at, asked_by, because, offline_at, seqno in found:
            return Request(_number(asked_at), str(asked_by), str(because), _known(offline_at), _known(seqno))
        return None

    def forget_request(self, service: str) -> None:
        """Delete the request to an earlier applier, when a new one starts."""
        if self.request(service) is not None:
            self._run("DELETE FROM {thl_requests} WHERE service = ?", service)

    def went_offline(self, service: str, at: int, seqno: int) -> None:
        """Record that the applier went offline as requested."""
        self._run("UPDATE {thl_requests} SET offline_at = ?, seqno = ? WHERE service = ?", at, seqno, service)

    def skipped(self, service: str) -> set[int]:
        """The seqnos of the skipped events."""
        if not self._session.has("thl_skipped"):
            return set()
        return {_number(seqno) for (seqno,) in self._run("SELECT seqno FROM {thl_skipped} WHERE service = ?", service)}

    def intent(self, service: str) -> Intent | None:
        """The commit that several writers have made in part; None if there is none."""
        if not self._session.has("thl_intent"):
            return None
        begun = self._run(intent_query("?"), service)
        return intent_from(begun)[0] if begun else None

    def position(self, service: str) -> TargetPosition | None:
        """The position, with the intent, before a claim; None if there is none."""
        if not self._session.has("thl_position"):
            return None
        rows = self._run(f"SELECT {', '.join(POSITION)} FROM {{thl_position}} WHERE service = ?", service)
        heads = (
            self._run("SELECT head FROM {thl_rewound} WHERE service = ?", service)
            if self._session.has("thl_rewound")
            else []
        )
        found = [position_from(service, row, heads[0][0] if heads else None) for row in rows]
        return replace(found[0], intent=self.intent(service)) if found else None

    def applied_at(self, service: str, seqno: int) -> int | None:
        """The time at which an event was applied, in `thl_applied`: µs since 1970 UTC, by the applier's clock."""
        if not self._session.has("thl_applied"):
            return None
        query = "SELECT applied_at FROM {thl_applied} WHERE service = ? AND seqno = ?"
        return next((_number(at) for (at,) in self._run(query, service, seqno)), None)

    def inconsistent(self, service: str) -> list[Inconsistent]:
        """The tables that may differ from the source's, ordered by name."""
        if not self._session.has("thl_inconsistent"):
            return []
        columns = "schema_name, table_name, since_seqno, because"
        return [
            Inconsistent(str(schema), str(table), _number(since), str(because))
            for schema, table, since, because in self._run(
                f"SELECT {columns} FROM {{thl_inconsistent}} WHERE service = ? ORDER BY 1, 2", service
            )
        ]

    def loading(self, service: str) -> dict[TableName, Loading]:
        """The tables that are being loaded."""
        if not self._session.has("thl_loading"):
            return {}
        return loading_from(
            self._run(f"SELECT {LOADING} FROM {{thl_loading}} WHERE service = ? ORDER BY 1, 2", service)
        )

    def excluded(self, service: str) -> dict[TableName, Excluded]:
        """The excluded tables."""
        if not self._session.has("thl_excluded"):
            return {}
        return excluded_from(
            self._run(f"SELECT {EXCLUDED} FROM {{thl_excluded}} WHERE service = ? ORDER BY 1, 2", service)
        )

    def found_equal(self, service: str, tables: Collection[str], seqno: int, *, every: bool) -> list[Inconsistent]:
        """Delete the marks of tables that were compared and are equal.

        Args:
            tables: `schema.table` of the equal tables.
            seqno: the target's last event during the comparison; marks of later events stay.
            every: all tables were compared and are equal, so marks of unknown tables are deleted, too.

        Returns:
            The deleted marks.
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
