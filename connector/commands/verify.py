"""`thl verify`: compares source and target."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import JSON, command, option
from connector.commands.grammar.ending import stop_at_signals
from connector.commands.grammar.options import configured, text_or_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from connector.config.model import Config
    from connector.verify import Report, Verdict

EXIT_CODES = {"equal": 0, "different": 9, "not all compared": 13}  # by verdict
SHOWN = 20
TABLES = "Tables"


@command(
    earlier={**JSON, "--without": "--ignore", "--patience": "--stall-timeout"},
    examples={
        "thl verify": "Compare every captured table.",
        "thl verify --table shop.orders --format json": "Compare one table.",
        "thl verify --every 3600 --ignore 'shop.*_log'": "Compare every hour, without some tables.",
    },
)
@configured("source", "target")
@option("--table", "tables", section=TABLES, multiple=True, metavar="SCHEMA.TABLE", help="Only this table. Repeatable.")
@option(
    "--ignore",
    section=TABLES,
    multiple=True,
    metavar="PATTERN",
    help="No tables that match: schema.table, with * and ?. Repeatable.",
)
@option(
    "--stall-timeout",
    type=float,
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Compare anyway when the target lags and has made no progress for this long.",
)
@option(
    "--every",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Compare again after this time, until SIGTERM or SIGINT.",
)
@text_or_json("One JSON object instead of text; with --every one per line.")
@click.pass_context
def verify(
    ctx: click.Context,
    config: Config,
    tables: tuple[str, ...],
    ignore: tuple[str, ...],
    *,
    stall_timeout: float,
    every: float | None,
    as_json: bool,
) -> None:
    """Compare every captured table of source and target at one seqno, value by value.

    Reads every row of both, takes no locks. Rules of source.filters.tables are applied to the source's rows first; a
    table of which a rule publishes only some of insert, update and delete cannot be compared, and is named. The mark of
    a table that an event was skipped for (thl apply --skip-seqno) is removed when the table is equal.

    Exits with 9 when tables differ, and with 13 when none differ but not all captured tables were compared; tables that
    match --ignore do not count. With --every, metrics.port serves the results.
    """
    from functools import partial

    from connector.verify import verify as compare

    show = partial(
        _show, config, every_table=not (tables or ignore), as_json=as_json, indent=2 if every is None else None
    )
    if every is None:
        report = compare(config, tables or None, ignored=ignore, patience=stall_timeout)
        show(report)
        ctx.exit(EXIT_CODES[report.verdict])
    ctx.exit(EXIT_CODES[_go_on(config, tables, ignore, patience=stall_timeout, every=every, show=show)])


def _go_on(
    config: Config,
    tables: tuple[str, ...],
    ignored: tuple[str, ...],
    *,
    patience: float,
    every: float,
    show: Callable[[Report], None],
) -> Verdict:
    """Compare until a signal comes; returns the verdict of the last comparison."""

    from connector import metrics
    from connector.clock import SystemClock
    from connector.verify.watch import watch

    stop = stop_at_signals()
    metrics.serve(config.metrics)
    clock = SystemClock()
    return watch(config, tables or None, show, patience=patience, every=every, stop=stop, clock=clock, ignored=ignored)


def _show(config: Config, report: Report, *, every_table: bool, as_json: bool, indent: int | None) -> None:
    """Remove the marks of tables that are equal, and print the report."""
    from connector.errors import PreflightError
    from connector.targets.open import open_signal_table

    equal = {table.target or table.name for table in report.tables if table.equal}
    every = every_table and report.verdict == "equal"
    try:
        with open_signal_table(config.target) as signals:
            cleared = signals.found_equal(config.service, equal, report.seqno, every=every)
    except PreflightError as error:
        cleared = []
        click.echo(f"marks of tables with skipped events cannot be removed: {error.message}", err=True)
    for one in cleared:
        click.echo(f"{one.schema}.{one.table} is equal again; marked since event {one.since}: {one.reason}", err=True)
    shown = {"verdict": report.verdict, **asdict(report)}
    click.echo(json.dumps(shown, indent=indent) if as_json else _text(report))


def _text(report: Report) -> str:
    lines = []
    for table in report.tables:
        lines.append(f"{table.name}: {table.rows:,} rows, {'equal' if table.equal else 'DIFFERENT'}")
        lines += [f"  {difference}" for difference in table.differences[:SHOWN]]
        if len(table.differences) > SHOWN:
            lines.append(f"  … and {len(table.differences) - SHOWN} more")
    lines += [
        f"{name}: NOT compared: a rule of source.filters.tables publishes only some of its changes"
        for name in report.filtered
    ]
    lines += [f"{name}: not compared (--ignore)" for name in report.left_out]
    if not report.equal and not report.exact:
        cause = f" ({report.lags})" if report.lags else ""
        lines.append(
            f"the target was not at the source's position{cause}: differences may be rows that are not applied yet"
        )
    return "\n".join([*lines, _verdict(report)])


def _verdict(report: Report) -> str:
    at = f"at seqno {report.seqno}"
    if not report.tables:
        return f"nothing was compared {at}: no captured table can be compared"
    if report.verdict == "different":
        return f"source and target are NOT equal {at}"
    if report.filtered:
        return f"{len(report.tables)} tables are equal {at}, {len(report.filtered)} were NOT compared"
    return f"source and target are equal {at}"
