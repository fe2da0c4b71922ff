"""Compares all captured tables, within one view of the source and one of the target."""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from typing import Final

from connector.clock import Clock, SystemClock
from connector.config.model import Config
from connector.config.target_url import duckdb_file, missing_driver, sqlite_file, target_kind
from connector.errors import ConfigError
from connector.mysql.transforms.filters import Filter
from connector.patterns import glob
from connector.verify.compare import NAMED, compare
from connector.verify.mysql import MySqlReader
from connector.verify.postgres import PostgresReader
from connector.verify.report import Difference, DifferenceKind, Report, TableReport
from connector.verify.rules import comparable
from connector.verify.source import ComparedTable, SourceReader
from connector.verify.sqlite import SqliteReader
from connector.verify.target import TargetReader, TargetState
from connector.verify.waiting import PublishedLog, is_ahead, wait

ROUNDS: Final = 5
NEAR: Final = 0.8  # names of one database have much in common
SHOWN: Final = 10  # tables that a hint names

LOG: Final = logging.getLogger(__name__)


def verify(
    config: Config,
    tables: Collection[str] | None = None,
    *,
    ignored: Collection[str] = (),
    patience: float = 10.0,
    clock: Clock | None = None,
    named: int = NAMED,
    log: PublishedLog | None = None,
) -> Report:
    """Compare the captured tables of source and target.

    The source's view is opened first; then the target is waited for until it has everything in that view. While the
    source is written to, the target may be ahead of the view: tables that differ are then compared again, a few times,
    and only differences that every round has found the same are reported. A target without progress is compared once.

    Args:
        config: names both servers.
        tables: compare only these, as `schema.table`; None: all.
        ignored: patterns of tables that are not compared.
        patience: seconds without progress of the target after which it is compared as it is.
        clock: measures the waiting.
        named: the most differences that are named of a table.
        log: the log of the service. Without it a target lags whose source has transactions that are not captured.

    Raises:
        SourceUnavailable, TargetUnavailable: a server does not answer.
        ConfigError: a named table does not exist, or a rule publishes only some of its changes; or a pattern matches
            no table.
    """
    clock = clock or SystemClock()
    reports: dict[str, TableReport] = {}
    with closing(SourceReader(config.source)) as source, closing(open_reader(config)) as target:
        chosen: Collection[str] | None = tables
        filter = source.filter()
        for remaining in reversed(range(ROUNDS)):
            seen = source.view()
            if remaining == ROUNDS - 1:  # a name that is wrong is not to be waited for
                with target.view(config.service) as state:
                    _chosen(tables, ignored, filter, _captured(source, filter, state))
            lags = wait(source, target, seen, service=config.service, patience=patience, clock=clock, log=log)
            with target.view(config.service) as state:
                exact = seen.exact and state.consistent and not lags and not is_ahead(source, seen, state)
                captured = _captured(source, filter, state)
                filtered, left_out = _chosen(tables, ignored, filter, captured)
                for name, table in sorted(captured.items()):
                    if name not in {*filtered, *left_out} and (chosen is None or name in chosen):
                        found = _table(source, target, name, table, state, named=named)
                        reports[name] = found if exact else _lasting(reports.get(name), found)
            chosen = {name for name, report in reports.items() if not report.equal}
            if exact or lags or not chosen or not remaining:
                break
            LOG.info("tables differ while the target moves: comparing again", extra={"tables": sorted(chosen)})
    return Report(tuple(reports[name] for name in sorted(reports)), state.seqno, exact, filtered, left_out, lags)


def _lasting(before: TableReport | None, now: TableReport) -> TableReport:
    """Keep the differences that the previous round had as well; the others were changes in transit.

    Keeps all if one of the rounds could not name all of its differences.
    """
    if before is None or any(
        difference.what is DifferenceKind.MORE for difference in (*before.differences, *now.differences)
    ):
        return now
    earlier: dict[str, list[Difference]] = {}
    for difference in before.differences:
        earlier.setdefault(difference.row, []).append(difference)
    return replace(
        now,
        differences=tuple(
            one for one in now.differences if any(one.lasts(other) for other in earlier.get(one.row, ()))
        ),
    )


def open_reader(config: Config) -> TargetReader:
    """Open a reader of the configured target.

    Raises:
        ConfigError: the URL has an unknown scheme.
        TargetUnavailable: the target does not answer.
    """
    url = config.target.url.get_secret_value()
    match target_kind(url):
        case "sqlite":
            return SqliteReader(sqlite_file(url))
        case "postgres":
            return PostgresReader(url)
        case "mysql":
            return MySqlReader(url)
        case "duckdb":
            try:
                from connector.verify.duckdb import DuckDbReader  # noqa: PLC0415 - optional
            except ModuleNotFoundError as error:
                raise missing_driver("duckdb") from error
            return DuckDbReader(duckdb_file(url))


def _captured(source: SourceReader, filter: Filter, state: TargetState) -> dict[str, ComparedTable | None]:
    """Return every table that must be on both sides; None for one that only the target has."""
    on_source = {".".join(table.name): table for table in source.tables(filter)}
    published = {table.target for table in on_source.values()}
    return {".".join(name): None for name in state.tables if name not in published} | on_source


def _chosen(
    tables: Collection[str] | None,
    ignored: Collection[str],
    filter: Filter,
    captured: dict[str, ComparedTable | None],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Check what the user has named; return the tables that a rule filters, and those that the user excluded.

    Raises:
        ConfigError: as `verify`.
    """
    _refuse_unknown(tables, captured)
    left_out = _left_out(ignored, captured)
    filtered = _filtered(filter, captured)
    _refuse_filtered(tables, filtered)
    return () if tables else tuple(name for name in filtered if name not in left_out), left_out


def _refuse_unknown(tables: Collection[str] | None, captured: dict[str, ComparedTable | None]) -> None:
    unknown = sorted(set(tables or ()) - captured.keys())
    if unknown:
        near = sorted({name for one in unknown for name in get_close_matches(one, captured, cutoff=NEAR)})
        hint = f"did you mean {' or '.join(near)}?" if near else f"--table SCHEMA.TABLE; captured: {_some(captured)}"
        raise ConfigError("no captured table has this name", hint=hint, tables=", ".join(unknown))


def _some(names: Collection[str]) -> str:
    more = len(names) - SHOWN
    return (", ".join(sorted(names)[:SHOWN]) or "none") + (f" and {more} more" if more > 0 else "")


def _left_out(ignored: Collection[str], captured: Collection[str]) -> tuple[str, ...]:
    """Return the tables that the user excluded."""
    for pattern in ignored:
        if not any(glob(pattern).fullmatch(name) for name in captured):
            raise ConfigError(
                "no captured table matches a pattern",
                hint="--ignore PATTERN: schema.table, with * and ?",
                pattern=pattern,
            )
    return tuple(name for name in sorted(captured) if any(glob(pattern).fullmatch(name) for pattern in ignored))


def _filtered(filter: Filter, captured: Collection[str]) -> tuple[str, ...]:
    """Return the tables whose rows on the target differ from the source's by a rule."""
    names = [(name, *name.partition(".")[::2]) for name in sorted(captured)]
    return tuple(name for name, schema, table in names if not comparable(filter.rule(schema, table)))


def _refuse_filtered(tables: Collection[str] | None, filtered: Collection[str]) -> None:
    asked = sorted(set(tables or ()).intersection(filtered))
    if asked:
        raise ConfigError(
            "a rule of source.filters.tables publishes only some changes: the target's rows differ from the source's",
            hint="name other tables with --table",
            tables=", ".join(asked),
        )


def _table(
    source: SourceReader,
    target: TargetReader,
    name: str,
    table: ComparedTable | None,
    state: TargetState,
    *,
    named: int,
) -> TableReport:
    elsewhere = "" if table is None or table.target == table.name else ".".join(table.target)
    schema, _, called = (elsewhere or name).partition(".")
    if (since := state.excluded.get((schema, called))) is not None:
        excluded = Difference(DifferenceKind.EXCLUDED, detail=f"since event {since} (thl apply --exclude-table)")
        return TableReport(name, 0, (excluded,), elsewhere)
    if (since := state.loading.get((schema, called))) is not None:
        loading = Difference(DifferenceKind.LOADING, detail=f"since event {since} (thl load --status)")
        return TableReport(name, 0, (loading,), elsewhere)
    if table is None:
        return TableReport(name, 0, (Difference(DifferenceKind.EXTRA),))
    if table.target not in state.tables:
        return TableReport(name, 0, (Difference(DifferenceKind.MISSING),), elsewhere)
    names = [column.name for column in table.published]
    metadata = state.metadata_columns.get(table.target, ())
    there = [name for name in target.columns(table.target) if name not in metadata]
    if {target.called(column) for column in names} != set(there):
        detail = f"(columns {', '.join(names)} on the source, {', '.join(there)} on the target)"
        return TableReport(name, 0, (Difference(DifferenceKind.CHANGED, detail=detail),), elsewhere)
    rows, differences = compare(
        partial(source.rows, table), partial(target.rows, table.target, table.published), names, table.key, named
    )
    return TableReport(name, rows, differences, elsewhere)
