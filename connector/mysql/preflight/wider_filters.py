"""Finds the history that the log lacks if filters capture more than before.

A table with rows that begins to be captured would be partial: its old rows are missing, and the first change of one
stops the applier. So the epoch's record has the capturing configuration; if it differs, the producer checks the
source's tables. Tables that were not captured at all join: they are loaded, with rows or without. What else the log
lacks is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import SecretStr, ValidationError

from connector.config.filters import Filters, TableRule, finds_column
from connector.config.source import Source
from connector.ddl.nullable_columns import DATES
from connector.ddl.syntax.tokens import quoted
from connector.errors import PreflightError
from connector.log.rules import NEW_LOG
from connector.log.transaction.layout import TableName
from connector.mysql.server.connection import Connection, query, source_errors
from connector.mysql.server.privileges import read_privileges, unreadable
from connector.mysql.snapshot.loadable import SEQUENCE, LoadCandidate, Purpose, candidates, unloadable
from connector.mysql.transforms.filters import CASCADES, Filter, capture_of
from connector.mysql.transforms.table_rules import RuledColumns
from connector.patterns import glob

NAMED: Final = 10
WAY_OUT: Final = (
    f"revert the filter; or {NEW_LOG}, whose initial load has these rows; or continue with "
    "partial tables, whose old rows no target gets: thl produce --accept-partial {}"
)

_COLUMNS: Final = (
    "SELECT COLUMN_NAME AS c, DATA_TYPE AS k FROM information_schema.COLUMNS "
    "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION"
)


@dataclass(frozen=True, slots=True)
class MissingHistory:
    """History that the log lacks of something captured from now on.

    Args:
        what: `schema.table`, or `server_id=N`.
        why: the reason.
        joins: a table that a load makes whole; None: no load can.
    """

    what: str
    why: str
    joins: TableName | None = None

    def __str__(self) -> str:
        return f"{self.what} ({self.why})"


@dataclass(frozen=True, slots=True)
class CaptureChange:
    """The changes that filters make which differ from those of the log's last epoch.

    Args:
        partial: the missing history that is accepted.
        joined: tables that were not captured, and are to be loaded.
        left: tables that were captured, and are not any more.
    """

    partial: tuple[MissingHistory, ...] = ()
    joined: tuple[TableName, ...] = ()
    left: tuple[TableName, ...] = ()


def same_tables(before: Mapping[str, Any] | None, source: Source) -> bool:
    """True if the same is captured as before, except for servers that are ignored since."""
    now = {name: value for name, value in capture_of(source).items() if name != CASCADES}
    before = None if before is None else {name: value for name, value in before.items() if name != CASCADES}
    ignored = {*source.ignore_server_ids, source.server_id}
    return (
        before is not None
        and {**before, "ignore_server_ids": now["ignore_server_ids"]} == now
        and (ignored >= set(before.get("ignore_server_ids", ())))
    )


def accepts_all(accepted: Sequence[str]) -> bool:
    """True if all missing history is accepted, so that nothing needs checking."""
    return "*" in accepted


def check_widened(
    connection: Connection, source: Source, filter: Filter, before: Mapping[str, Any] | None, accepted: Sequence[str]
) -> CaptureChange:
    """Checks that nothing begins to be captured whose rows the log lacks, and no load brings.

    Args:
        connection: a session on the source.
        source: the configured section `source`.
        filter: made from that.
        before: the configuration until now, from `capture_of`; None: the log does not have it.
        accepted: patterns of history that may be missing.

    Raises:
        PreflightError: other history is missing, or this is not known; or no table is captured any more.
    """
    if same_tables(before, source):
        return CaptureChange()
    if accepts_all(accepted):
        return CaptureChange((MissingHistory("*", "accepted without a check"),))
    old = _filter_of(source, filter, before)
    with source_errors(source):
        hidden = list(unreadable(read_privileges(connection), source.filters.do))
        if hidden:
            raise PreflightError(
                "other tables are captured than before, and the user may not see all tables, so rows that the log "
                "lacks cannot be found",
                hint=f"GRANT SELECT ON {hidden[0]} TO the user; or thl produce --accept-partial '*'",
            )
        # Of a sequence the log has every value.
        tables = [one for one in candidates(connection) if one.kind != SEQUENCE]
        left = _left([one.name for one in tables], filter, old)
        rekeyed = _rekeyed(source, before or {})
        found = [*_servers(source, before or {}), *_tables(connection, tables, filter, old, rekeyed=rekeyed)]
    taken = [one for one in found if any(glob(pattern).fullmatch(one.what) for pattern in accepted)]
    refused = [one for one in found if one not in taken and one.joins is None]
    if refused:
        named = "; ".join(map(str, refused[:NAMED])) + (f"; and {len(refused) - NAMED} more" if refused[NAMED:] else "")
        raise PreflightError(
            f"more is captured than when the log's last epoch began, and the log lacks history of: {named}",
            hint=WAY_OUT.format(" --accept-partial ".join(one.what for one in refused[:NAMED])),
            captured_before=None if before is None else before["filters"],
            captured_now=capture_of(source)["filters"],
        )
    joined = tuple(one.joins for one in found if one not in taken and one.joins is not None)
    return CaptureChange(tuple(taken), joined, left)


def _left(tables: Collection[TableName], new: Filter, old: Filter) -> tuple[TableName, ...]:
    """The tables of the source that are not captured any more.

    Raises:
        PreflightError: these are all that were captured: the filters are probably misspelt.
    """
    left = tuple(name for name in tables if old.captures(*name) and not new.captures(*name))
    if left and not any(new.captures(*name) for name in tables):
        raise PreflightError(
            "source.filters captures no table of the source any more",
            hint="correct it; or, to publish nothing of them from now on: thl produce --accept-partial '*'",
            captured_before=", ".join(map(str, left[:NAMED])) + (" …" if left[NAMED:] else ""),
        )
    return left


def _filter_of(source: Source, filter: Filter, before: Mapping[str, Any] | None) -> Filter:
    """The filter before."""
    try:
        # The hash key is not recorded; its digest is compared separately.
        filters = Filters.model_validate({**(before or {})["filters"], "hash_key": SecretStr("-" * 16)})
    except (KeyError, ValidationError) as error:
        raise PreflightError(
            "the filters have changed, and the log does not record what it captured before",
            hint="is every table that is captured now in the log from its beginning? Then thl produce "
            f"--accept-partial '*'; else {NEW_LOG}",
        ) from error
    return Filter(filters, int(filter.fold("A") == "a"))


def _servers(source: Source, before: Mapping[str, Any]) -> Iterator[MissingHistory]:
    now = {*source.ignore_server_ids, source.server_id}
    for number in before.get("ignore_server_ids", ()):
        if number not in now:
            yield MissingHistory(f"server_id={number}", "its changes were ignored: source.ignore_server_ids")


def _rekeyed(source: Source, before: Mapping[str, Any]) -> bool:
    return bool(before.get("hash_key") != capture_of(source)["hash_key"])


def _tables(
    connection: Connection, tables: Iterable[LoadCandidate], new: Filter, old: Filter, *, rekeyed: bool
) -> Iterator[MissingHistory]:
    """Tables that join, and those with rows that the log lacks or has with other values."""
    captured = [one for one in tables if new.captures(*one.name)]
    refused = unloadable(captured, new, Purpose.JOIN)
    for name in (one.name for one in captured):
        why = _why(connection, name, new, old, rekeyed=rekeyed)
        refusal = refused.get(new.published_name(name))
        joins = why == _NOT_CAPTURED and refusal is None
        # A table that joins may be in the log from an earlier time, with rows and columns that it no longer has.
        if why and (joins or why == _DELETES or _holds_rows(connection, name)):
            if why == _NOT_CAPTURED and refusal is not None:
                why += f", and no load can bring its rows: {refusal.reason.text}"
            yield MissingHistory(str(name), why, name if joins else None)


_NOT_CAPTURED: Final = "it was not captured"
_DELETES: Final = "deletes were not published"


def _why(connection: Connection, name: TableName, new: Filter, old: Filter, *, rekeyed: bool) -> str:
    """The reason why the log lacks history of a table; "": it does not."""
    if not old.captures(*name):
        return _NOT_CAPTURED
    before, now = old.rule(*name), new.rule(*name)
    if old.published_name(name) != new.published_name(name):
        return f"it was published as {old.published_name(name)}"
    added = set(new.actions(*name)) - set(old.actions(*name)) - {"ddl"}
    if added:
        return _DELETES if added == {"delete"} else f"without {' and '.join(sorted(added))}"
    if before is None or (before == now and not rekeyed):
        return ""
    kinds = {str(row["c"]): str(row["k"]) for row in query(connection, _COLUMNS, (name.schema, name.table))}
    return "; ".join(columns_otherwise(kinds, before, now, rekeyed=rekeyed))


def columns_otherwise(
    kinds: Mapping[str, str], before: TableRule, now: TableRule | None, *, rekeyed: bool
) -> Iterator[str]:
    """Describes columns that are published differently from now on.

    Args:
        kinds: type of each column, without its size.
        before, now: the table's rules.
        rekeyed: true if the hash key has changed.
    """
    old = RuledColumns(before)
    other = [column for column in kinds if _comes_otherwise(column, before, now, rekeyed=rekeyed)]
    zeros = [column for column in other if old.treats(column) == (None, True)]
    hidden = [column for column in other if column not in zeros]
    if hidden:
        yield f"of columns that were dropped or masked: {', '.join(hidden)}"
    if dates := [column for column in zeros if kinds[column].lower() in DATES]:
        yield f"of columns whose zero dates were published as NULL: {', '.join(dates)}"


def _comes_otherwise(column: str, before: TableRule, now: TableRule | None, *, rekeyed: bool) -> bool:
    """True if rows in the log lack values of a column that are published from now on."""
    old = RuledColumns(before)
    new = None if now is None else RuledColumns(now)
    if new is not None and new.drops(column):
        return False
    was, is_ = old.treats(column), ((None, False) if new is None else new.treats(column))
    hidden = was != (None, False)
    return hidden and (was != is_ or (rekeyed and _hashed(before, column)))


def _hashed(rule: TableRule, column: str) -> bool:
    return any(mask.hash is not None and finds_column((pattern,), column) for pattern, mask in rule.mask.items())


def _holds_rows(connection: Connection, name: TableName) -> bool:
    return bool(query(connection, f"SELECT 1 AS one FROM {quoted(name.schema)}.{quoted(name.table)} LIMIT 1"))
