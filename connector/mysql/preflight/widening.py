"""What a log lacks when more of the source is captured from here on than was before.

A table that begins to be captured while it holds rows would be a partial one: its rows never come, and the first change
of one of them ends the applier. So what decides what is captured stands in the epoch's record, and a producer that
finds another there looks at the tables that the source has now.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from pydantic import SecretStr, ValidationError

from connector.config.model import Filters, Source, TableRule, finds_column
from connector.errors import PreflightError
from connector.log.transaction.layout import TableName
from connector.mysql.server.connection import Connection, query, quoted, speaking_to
from connector.mysql.server.privileges import read_privileges, unreadable
from connector.mysql.transforms.filters import SYSTEM_SCHEMAS, TABLES_WITH_ROWS, UNRECORDED, Filter
from connector.mysql.transforms.table_rules import RuledColumns, hash_key_digest

NAMED: Final = 10
DATES: Final = {"date", "datetime", "timestamp"}
WAY_OUT: Final = (
    "take the wider filter back; or begin a new log (another `service`), whose initial load has these rows; or go on "
    "with partial tables, whose old rows no target gets: thl produce --accept-partial {}"
)

_TABLES: Final = (
    f"SELECT TABLE_SCHEMA AS s, TABLE_NAME AS t FROM information_schema.TABLES WHERE {TABLES_WITH_ROWS} "
    "ORDER BY TABLE_SCHEMA, TABLE_NAME"
)
_COLUMNS: Final = (
    "SELECT COLUMN_NAME AS c, DATA_TYPE AS k FROM information_schema.COLUMNS "
    "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION"
)


@dataclass(frozen=True, slots=True)
class MissingHistory:
    """What the log lacks of something that is captured from here on.

    Args:
        what: `schema.table`, or `server_id=N`.
        why: how it came not to be captured.
    """

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what} ({self.why})"


def capture_of(source: Source) -> dict[str, Any]:
    """All that decides what of a source is captured, as an epoch's record holds it: no secrets, and of two ways to
    write the same only one."""
    return {
        "filters": source.filters.model_dump(mode="json", exclude_defaults=True, exclude=UNRECORDED),
        "hash_key": hash_key_digest(source.filters),
        "ignore_server_ids": sorted(source.ignore_server_ids),
    }


def same_tables(before: Mapping[str, Any] | None, source: Source) -> bool:
    """Whether the same is captured as before, but for servers that are ignored since."""
    now = capture_of(source)
    ignored = {*source.ignore_server_ids, source.server_id}
    return (
        before is not None
        and {**before, "ignore_server_ids": now["ignore_server_ids"]} == now
        and (ignored >= set(before.get("ignore_server_ids", ())))
    )


def accepts_all(accepted: Sequence[str]) -> bool:
    """Whether nobody needs to look at what may be lacking."""
    return "*" in accepted


def check_widened(
    connection: Connection, source: Source, filter: Filter, before: Mapping[str, Any] | None, accepted: Sequence[str]
) -> tuple[MissingHistory, ...]:
    """Check that nothing begins to be captured of which the log lacks rows.

    Args:
        connection: a session on the source.
        source: its section.
        filter: made of that.
        before: what was captured until now, as `capture_of` had it; None: the log does not tell.
        accepted: patterns of what may be lacking.

    Returns:
        What is lacking, and accepted.

    Raises:
        PreflightError: something else is; or nobody can tell.
    """
    if same_tables(before, source):
        return ()
    if accepts_all(accepted):
        return (MissingHistory("*", "accepted unseen"),)
    old = _filter_of(source, filter, before)
    with speaking_to(source):
        hidden = list(unreadable(read_privileges(connection), source.filters.do))
        if hidden:
            raise PreflightError(
                "other tables are captured than before, and the user may not see all tables: which of them hold rows "
                "that the log lacks, nobody can tell",
                hint=f"GRANT SELECT ON {hidden[0]} TO the user; or thl produce --accept-partial '*'",
            )
        found = [*_servers(source, before or {}), *_tables(connection, filter, old, _rekeyed(source, before or {}))]
    refused = [one for one in found if not any(fnmatchcase(one.what, pattern) for pattern in accepted)]
    if refused:
        named = "; ".join(map(str, refused[:NAMED])) + (f"; and {len(refused) - NAMED} more" if refused[NAMED:] else "")
        raise PreflightError(
            f"more is captured than when the log's last epoch began, and the log lacks what it is about: {named}",
            hint=WAY_OUT.format(" --accept-partial ".join(one.what for one in refused[:NAMED])),
            captured_before=None if before is None else before["filters"],
            captured_now=capture_of(source)["filters"],
        )
    return tuple(found)


def _filter_of(source: Source, filter: Filter, before: Mapping[str, Any] | None) -> Filter:
    """The filter that there was."""
    try:
        # A hash's key is not kept; which it was is compared by itself.
        filters = Filters.model_validate({**(before or {})["filters"], "hash_key": SecretStr("-" * 16)})
    except (KeyError, ValidationError) as error:
        raise PreflightError(
            "the filters have changed, and what the log captured before is not told in it",
            hint="is every table that is captured now in the log from its beginning? Then thl produce "
            "--accept-partial '*'; else begin a new log (another `service`)",
        ) from error
    return Filter(filters, int(filter.fold("A") == "a"))


def _servers(source: Source, before: Mapping[str, Any]) -> Iterator[MissingHistory]:
    now = {*source.ignore_server_ids, source.server_id}
    for number in before.get("ignore_server_ids", ()):
        if number not in now:
            yield MissingHistory(f"server_id={number}", "what it wrote was ignored: source.ignore_server_ids")


def _rekeyed(source: Source, before: Mapping[str, Any]) -> bool:
    return bool(before.get("hash_key") != capture_of(source)["hash_key"])


def _tables(connection: Connection, new: Filter, old: Filter, rekeyed: bool) -> Iterator[MissingHistory]:
    """Tables that hold rows of which the log lacks some, or has other values."""
    for row in query(connection, _TABLES):
        name = TableName(row["s"], row["t"])
        if name.schema in SYSTEM_SCHEMAS or not new.captures(*name):
            continue
        why = _why(connection, name, new, old, rekeyed=rekeyed)
        if why and (why == _DELETES or _holds_rows(connection, name)):
            yield MissingHistory(str(name), why)


_DELETES: Final = "deletes were not published"


def _why(connection: Connection, name: TableName, new: Filter, old: Filter, *, rekeyed: bool) -> str:
    """Why the log has not what it is to have of a table's rows; "" where it has."""
    if not old.captures(*name):
        return "it was not captured"
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
    """Which columns come otherwise from here on, and how they came.

    Args:
        kinds: the type of each column of the table, without its size.
        before, now: its rules.
        rekeyed: whether hashes have another key.
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
    """Whether rows that are in the log lack what is published of a column from here on. Less is no harm."""
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
