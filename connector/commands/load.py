"""`thl load`: has the producer load tables while it publishes the log; shows how far loads are; ends them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import JSON, OPTIONS, command, option
from connector.commands.grammar.options import configured, text_or_json, who

if TYPE_CHECKING:
    from collections.abc import Sequence

    from connector.config.model import Config
    from connector.log.epochs.control import ControlState
    from connector.log.epochs.loads import LoadRequest
    from connector.log.transaction.layout import TableName
    from connector.mysql.snapshot.loadable import LoadCandidate
    from connector.mysql.transforms.filters import Filter

POLL_SECONDS = 1.0
NOT_CAPTURED = ("the source has no captured table", "source.filters decides what is captured")


@command(
    earlier=JSON,
    examples={
        "thl load shop.orders": "Load a table that joined, that a target has left out, or that is wrong there.",
        "thl load 'shop.*' --wait": "Load all tables of a schema, and wait until they are whole.",
        "thl load shop.orders --for-target lake": "Load it on one of several targets, which has `target.id: lake`.",
        "thl load --status": "Show the newest load of each table, and why loads pause.",
        "thl load shop.orders --dry-run": "Show what the load would read, and about how long that takes.",
    },
)
@click.argument("tables", nargs=-1, metavar="TABLE…")
@configured()
@option(
    "--for-target",
    "targets",
    section=OPTIONS,
    multiple=True,
    metavar="ID",
    help="Load the tables on the target with this `target.id` alone; on others nothing changes. Repeatable.",
)
@option("--status", is_flag=True, section=OPTIONS, help="Show the newest load of each table, or of these.")
@option("--cancel", is_flag=True, section=OPTIONS, help="End the loads of these tables; what is loaded stays.")
@option(
    "--dry-run",
    is_flag=True,
    section=OPTIONS,
    help="Ask for nothing: show the tables with the server's estimates of rows and bytes, their chunks, the expected "
    "time and what it is based on, and what would be refused.",
)
@option("--wait", is_flag=True, section=OPTIONS, help="Wait until the loads of these tables have ended.")
@text_or_json()
def load(
    config: Config,
    tables: tuple[str, ...],
    *,
    targets: tuple[str, ...],
    status: bool,
    cancel: bool,
    dry_run: bool,
    wait: bool,
    as_json: bool,
) -> None:
    """Load tables of the source, named by patterns (`schema.table`, with `*` and `?`), while replication goes on.

    The producer reads them in rounds of about a second, and publishes their rows among the transactions. Until
    its load ends, the target treats the table as incomplete. Without a producer the request waits for one. An applier
    that stands stopped at an event of such a table goes on without the table when it is started, until the load begins.
    """
    from connector.clock import SystemClock
    from connector.errors import ConfigError, escaped
    from connector.kafka.log_reader import LogReader
    from connector.kafka.requests import send_requests
    from connector.mysql.server.connection import session
    from connector.mysql.server.source_state import is_read

    if not tables and not status:
        raise ConfigError("no table is named", hint="thl load schema.table; thl load --status shows all loads")
    if targets and (status or cancel):
        raise ConfigError("--for-target says for which targets tables are loaded: not with --status or --cancel")
    if status and (cancel or wait or dry_run):
        raise ConfigError("--status shows loads: not with --cancel, --wait or --dry-run")
    if dry_run and (cancel or wait):
        raise ConfigError("--dry-run asks for nothing: not with --cancel or --wait")
    _check_ids(targets)
    with LogReader(config, high_watermark=True) as reader:
        control = reader.control(may_lack=True)
    if status:
        _show(config, control, tables, as_json=as_json)
        return
    if dry_run:
        _show_estimate(config, control, tables, as_json=as_json)
        return
    now = SystemClock().now()
    requests = _asked_to_end(control, tables, now) if cancel else _asked_for(config, control, tables, targets, now)
    send_requests(config, requests)
    for request in requests:
        asked = "asked to end the load of" if cancel else "asked to load"
        click.echo(escaped(f"{asked} {request.table}{_for(request.targets)}"))
        if not cancel and set(request.targets) != set(targets):
            click.echo("  an earlier load of it has begun, and not ended: the targets of that load are among these")
    if not cancel:
        with session(config.source) as connection:
            if not is_read(connection, config.source.server_id):
                click.echo("no producer reads the source's binary log: the load begins once `thl produce` is started")
    if wait:
        _wait(config, requests)


def _check_ids(targets: Sequence[str]) -> None:
    """Check the form of IDs of targets.

    Raises:
        ConfigError: no target can have one of them.
    """
    import re

    from connector.config.apply import TARGET_ID
    from connector.errors import ConfigError

    for target in targets:
        if not re.fullmatch(TARGET_ID, target):
            hint = "its target.id: letters, digits, and _ . - between them"
            raise ConfigError(f"--for-target {target!r} is not the ID of a target", hint=hint)


def _for(targets: Sequence[str]) -> str:
    return f" on {', '.join(targets)}" if targets else ""


def _asked_for(
    config: Config, control: ControlState, patterns: Sequence[str], targets: Sequence[str], now: int
) -> list[LoadRequest]:
    """The requests to load the captured tables of the source that patterns name.

    Raises:
        PreflightError: there is no log, a pattern names no captured table, or one that cannot be loaded.
    """
    from connector.kafka.requests import new_load_id
    from connector.log.epochs.loads import LoadRequest, targets_with_unfinished
    from connector.mysql.snapshot.loadable import Purpose, refuse_unloadable

    filter, tables = _captured(config, control)
    named = _matching(patterns, [one.name for one in tables], *NOT_CAPTURED, filter)
    together = _together(filter, tables, named)
    refuse_unloadable([one for group in together.values() for one in group], filter, Purpose.AGAIN)
    requests = []
    for published, group in together.items():
        load = new_load_id()
        for name in (one.name for one in group):
            meant = targets_with_unfinished(name, targets, control.load_requests, control.loads, control.trapped)
            requests.append(
                LoadRequest(table=name, load=load, asked_at=now, asked_by=who(), published=published, targets=meant)
            )
    return requests


def _captured(config: Config, control: ControlState) -> tuple[Filter, list[LoadCandidate]]:
    """The captured tables of the source whose rows are published.

    Raises:
        PreflightError: there is no log.
    """
    from connector.errors import PreflightError
    from connector.mysql.server.connection import session
    from connector.mysql.server.source_facts import read_facts
    from connector.mysql.snapshot.loadable import candidates, captured
    from connector.mysql.transforms.filters import Filter

    if control.log is None:
        raise PreflightError(
            "there is no log: the first `thl produce` begins with a load of all tables",
            hint="thl produce --dry-run shows it",
            service=config.service,
        )
    with session(config.source) as connection:
        filter = Filter.of(config.source, read_facts(connection).lower_case_table_names)
        return filter, captured(candidates(connection), filter)


def _together(
    filter: Filter, tables: Sequence[LoadCandidate], named: Sequence[TableName]
) -> dict[TableName, list[LoadCandidate]]:
    """The tables that are loaded with those that were named, by the name under which they are published."""
    together: dict[TableName, list[LoadCandidate]] = {filter.published_name(name): [] for name in named}
    for one in tables:
        together.get(filter.published_name(one.name), []).append(one)
    return together


def _show_estimate(config: Config, control: ControlState, patterns: Sequence[str], *, as_json: bool) -> None:
    """Print what a load of tables would read; exit with the code of what would refuse or stop it.

    Raises:
        PreflightError: there is no log.
    """
    from dataclasses import replace

    from connector.clock import SystemClock
    from connector.errors import PreflightError, escaped
    from connector.log.epochs.loads import outstanding
    from connector.mysql.snapshot.estimate import estimate_load
    from connector.mysql.snapshot.loadable import Purpose

    filter, tables = _captured(config, control)
    named: list[TableName] = []
    unknown: dict[str, str] = {}  # patterns that name no table
    for pattern in patterns:
        try:
            named += _matching([pattern], [one.name for one in tables], *NOT_CAPTURED, filter)
        except PreflightError as error:
            unknown[pattern] = f"{error.located}: {error.hint}"
    asked = [one.name for group in _together(filter, tables, named).values() for one in group]
    estimate = estimate_load(config.source, filter, SystemClock(), Purpose.AGAIN, asked)
    estimate = replace(estimate, refused={**unknown, **estimate.refused})
    under_way = [one.table for one, _ in outstanding(control.load_requests.values(), control.loads, control.trapped)]
    again = [str(each.name) for each in estimate.tables if each.name in under_way]
    if as_json:
        click.echo(json.dumps({**estimate.as_object(), "under_way": again}, indent=2))
    else:
        lines = [*estimate.lines(), *([f"Under way, and to begin again: {', '.join(again)}"] if again else ())]
        click.echo("\n".join(map(escaped, lines)))
    click.get_current_context().exit(estimate.exit_code)


def _asked_to_end(control: ControlState, patterns: Sequence[str], now: int) -> list[LoadRequest]:
    from dataclasses import replace

    from connector.log.epochs.loads import outstanding

    under_way = [one.table for one, _ in outstanding(control.load_requests.values(), control.loads, control.trapped)]
    return [
        replace(control.load_requests[name], asked_at=now, asked_by=who(), cancel=True, keys=())
        for name in _matching(patterns, under_way, "no load is under way of", "thl load --status shows all", None)
    ]


def _matching(
    patterns: Sequence[str], names: Sequence[TableName], what: str, hint: str, folded: Filter | None
) -> list[TableName]:
    from connector.errors import PreflightError
    from connector.patterns import table_pattern

    chosen: list[TableName] = []
    for text in patterns:
        fold = str if folded is None else folded.fold
        pattern = table_pattern(fold(text.strip()))
        matched = [name for name in names if pattern.finds(fold(name.schema), fold(name.table))]
        if not matched:
            raise PreflightError(f"{what} {text}", hint=hint)
        chosen += [name for name in matched if name not in chosen]
    return chosen


def _show(config: Config, control: ControlState, patterns: Sequence[str], *, as_json: bool) -> None:
    from connector.log.epochs.newest_load import NewestLoad
    from connector.status.loads import LoadsStatus

    newest = {load.table: load for load in NewestLoad.each(control.load_requests, control.loads, control.trapped)}
    hint = "thl load --status shows all"
    chosen = _matching(patterns, list(newest), "no load is known of", hint, None) if patterns else list(newest)
    status = LoadsStatus.of(config, [newest[table] for table in chosen])
    if as_json:
        click.echo(json.dumps(status.as_objects(), indent=2))
    else:
        click.echo(status.as_text())


def _wait(config: Config, requests: Sequence[LoadRequest]) -> None:
    """Wait until the loads that were asked for have ended.

    Raises:
        PreflightError: one was stopped or cancelled, or another was asked for in its place.
    """
    from connector.clock import SystemClock
    from connector.errors import PreflightError, escaped
    from connector.kafka.log_reader import LogReader
    from connector.log.epochs.newest_load import outcome

    clock = SystemClock()
    waiting = list(requests)
    while waiting:
        with LogReader(config, high_watermark=False) as reader:
            control = reader.control()
        for asked in list(waiting):
            try:
                ended = outcome(asked, control)
            except PreflightError as error:
                error.where = {"service": config.service, **error.where}
                raise
            if ended is not None:
                waiting.remove(asked)
                click.echo(escaped(f"{ended.table}: {ended.state}, {ended.rows or 0} rows"))
        if waiting:
            clock.sleep(POLL_SECONDS)
