"""All tables of source and target, each compared within one view of either."""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import closing
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from connector.clock import Clock, SystemClock
from connector.config.model import Config
from connector.errors import ConfigError
from connector.mysql.transforms.filters import Filter
from connector.verify.compare import compare
from connector.verify.postgres import PostgresReader
from connector.verify.report import Difference, Report, TableReport, What
from connector.verify.rules import comparable
from connector.verify.source import SourceReader, SourceState, SourceTable
from connector.verify.sqlite import SqliteReader
from connector.verify.target import TargetReader, TargetState

POLL_SECONDS: Final = 0.2
ROUNDS: Final = 5

_log = logging.getLogger(__name__)


def verify(
    config: Config,
    tables: Collection[str] | None = None,
    *,
    without: Collection[str] = (),
    patience: float = 10.0,
    clock: Clock | None = None,
) -> Report:
    """Compare the captured tables of source and target.

    The source's view is taken first; then the target is waited for until it has all that the view shows. While the
    source is written to, the target may be beyond that: tables that differ then are compared again, a few times, and
    what differs in each of these rounds is reported.

    Args:
        config: where both are.
        tables: only these, as `schema.table`; None: all.
        without: patterns of tables that need not be compared.
        patience: seconds without any progress of the target after which it is compared as it is.
        clock: for waiting.

    Raises:
        SourceUnavailable, TargetUnavailable: one does not answer.
        ConfigError: a table that is asked for does not exist, or a rule publishes only a part of its changes; or a
            pattern finds no table.
    """
    clock = clock or SystemClock()
    reports: dict[str, TableReport] = {}
    with closing(SourceReader(config.source)) as source, closing(open_reader(config)) as target:
        wanted: Collection[str] | None = tables
        filter = source.filter()
        for remaining in reversed(range(ROUNDS)):
            seen = source.view()
            _wait(source, target, seen, service=config.service, patience=patience, clock=clock)
            with target.view(config.service) as state:
                exact = seen.exact and state.consistent and _same(source, seen, state)
                captured = _captured(source, filter, state)
                _refuse_unknown(tables, captured)
                left_out = _left_out(without, captured)
                filtered = () if tables else tuple(name for name in _filtered(filter, captured) if name not in left_out)
                _refuse_filtered(tables, _filtered(filter, captured))
                for name, table in sorted(captured.items()):
                    if name not in {*filtered, *left_out} and (wanted is None or name in wanted):
                        found = _table(source, target, name, table, state)
                        reports[name] = found if exact else _lasting(reports.get(name), found)
            wanted = {name for name, report in reports.items() if not report.equal}
            if exact or not wanted or not remaining:
                break
            _log.info("tables differ while the target moves: comparing again", extra={"tables": sorted(wanted)})
    return Report(tuple(reports[name] for name in sorted(reports)), state.seqno, exact, filtered, left_out)


def _lasting(before: TableReport | None, now: TableReport) -> TableReport:
    """What differed in the round before, too: other rows were on their way. All of it, where not all was named."""
    if before is None or any(difference.what is What.MORE for difference in (*before.differences, *now.differences)):
        return now
    rows = {difference.row for difference in before.differences}
    return replace(now, differences=tuple(difference for difference in now.differences if difference.row in rows))


def open_reader(config: Config) -> TargetReader:
    """A reader for the configured target.

    Raises:
        ConfigError: a URL of no known kind.
        TargetUnavailable: it does not answer.
    """
    url = config.target.url.get_secret_value()
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return SqliteReader(Path(unquote(parts.path[1:])))
    if parts.scheme in {"postgresql", "postgres"}:
        return PostgresReader(url)
    raise ConfigError(f"target.url: no target is called {parts.scheme!r}", hint="sqlite:///… or postgresql://…")


def _wait(
    source: SourceReader, target: TargetReader, seen: SourceState, *, service: str, patience: float, clock: Clock
) -> None:
    """Until the target has everything that the source's view shows, or does not move any more."""
    moved, last = clock.monotonic(), None
    while clock.monotonic() - moved < patience:
        with target.view(service) as state:
            pass
        if state.consistent and not _behind(source, seen, state):
            return
        if state != last:
            moved, last = clock.monotonic(), state
        clock.sleep(POLL_SECONDS)


def _behind(source: SourceReader, seen: SourceState, state: TargetState) -> bool:
    if seen.gtid_set is not None and state.gtid_set is not None:
        return bool(source.missing(seen.gtid_set, state.gtid_set))
    return _place(state) < (seen.position.file, seen.position.offset)


def _same(source: SourceReader, seen: SourceState, state: TargetState) -> bool:
    """Whether neither has anything that the other has not."""
    if seen.gtid_set is not None and state.gtid_set is not None:
        return not source.missing(seen.gtid_set, state.gtid_set) and not source.missing(state.gtid_set, seen.gtid_set)
    return _place(state) == (seen.position.file, seen.position.offset)


def _place(state: TargetState) -> tuple[str, int]:
    """File and position of an event id, `file:position;thread`."""
    file, _, position = state.event_id.partition(";")[0].rpartition(":")
    return file, int(position or 0)


def _captured(source: SourceReader, filter: Filter, state: TargetState) -> dict[str, SourceTable | None]:
    """Every table that is to be on both sides; None where only the target has it."""
    on_source = {".".join(table.name): table for table in source.tables(filter)}
    published = {table.target for table in on_source.values()}
    return {".".join(name): None for name in state.tables if name not in published} | on_source


def _refuse_unknown(tables: Collection[str] | None, captured: dict[str, SourceTable | None]) -> None:
    unknown = sorted(set(tables or ()) - captured.keys())
    if unknown:
        raise ConfigError(f"no captured table is called {', '.join(unknown)}", hint="write schema.table")


def _left_out(without: Collection[str], captured: Collection[str]) -> tuple[str, ...]:
    """The tables that need not be compared."""
    for pattern in without:
        if not any(fnmatchcase(name, pattern) for name in captured):
            raise ConfigError(
                f"no captured table is found by {pattern}", hint="write schema.table; * and ? may stand in it"
            )
    return tuple(name for name in sorted(captured) if any(fnmatchcase(name, pattern) for pattern in without))


def _filtered(filter: Filter, captured: Collection[str]) -> tuple[str, ...]:
    """The tables whose rows are not to be those of the source."""
    names = [(name, *name.partition(".")[::2]) for name in sorted(captured)]
    return tuple(name for name, schema, table in names if not comparable(filter.rule(schema, table)))


def _refuse_filtered(tables: Collection[str] | None, filtered: Collection[str]) -> None:
    asked = sorted(set(tables or ()).intersection(filtered))
    if asked:
        raise ConfigError(
            f"a rule of source.filters.tables publishes only some changes of {', '.join(asked)}: on the target its "
            "rows are not to be those of the source",
            hint="name other tables with --table",
        )


def _table(
    source: SourceReader, target: TargetReader, name: str, table: SourceTable | None, state: TargetState
) -> TableReport:
    elsewhere = "" if table is None or table.target == table.name else ".".join(table.target)
    schema, _, named = (elsewhere or name).partition(".")
    if (since := state.excluded.get((schema, named))) is not None:
        excluded = Difference(What.EXCLUDED, detail=f"since event {since} (thl apply --exclude-table)")
        return TableReport(name, 0, (excluded,), elsewhere)
    if table is None:
        return TableReport(name, 0, (Difference(What.EXTRA),))
    if table.target not in state.tables:
        return TableReport(name, 0, (Difference(What.MISSING),), elsewhere)
    names = [column.name for column in table.published]
    there = [name for name in target.columns(table.target) if name not in state.beside.get(table.target, ())]
    if {target.called(column) for column in names} != set(there):
        detail = f"(columns {', '.join(names)} on the source, {', '.join(there)} on the target)"
        return TableReport(name, 0, (Difference(What.CHANGED, detail=detail),), elsewhere)
    rows, differences = compare(
        partial(source.rows, table), partial(target.rows, table.target, table.published), names, table.key
    )
    return TableReport(name, rows, differences, elsewhere)
