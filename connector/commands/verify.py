"""`thl verify`: compares source and target."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from connector.commands.grammar.command import JSON, command, option
from connector.commands.grammar.ending import stop_at_signals
from connector.commands.grammar.options import configured, text_or_json, who
from connector.logs import echo

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
        "thl verify --repair": "Compare, and mend the rows that differ, through the log.",
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
    "--repair",
    is_flag=True,
    help="Mend the rows that differ: the producer publishes them as they are on the source, and the applier replaces "
    "the target's. Then compare these tables again. Up to 10,000 rows of a table.",
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
    repair: bool,
    every: float | None,
    as_json: bool,
) -> None:
    """Compare every captured table of source and target at one seqno, value by value.

    Reads every row of both, takes no locks. Rules of source.filters.tables are applied to the source's rows first; a
    table of which a rule publishes only some of insert, update and delete cannot be compared, and is named. The mark of
    a table that an event was skipped for (thl apply --skip-seqno) is removed when the table is equal.

    Exits with 9 when tables differ, and with 13 when none differ but not all captured tables were compared; tables that
    match --ignore do not count. With --every, metrics.port serves the results.

    With --repair the exit code is that of the second comparison. A repair that producer or applier do not finish within
    --stall-timeout seconds without progress goes on without this command: thl load --status shows it, thl load
    --cancel ends it.
    """
    from functools import partial

    from connector.errors import ConfigError
    from connector.kafka.published_log import KafkaLog
    from connector.verify import verify as compare

    if repair and every is not None:
        raise ConfigError("--repair compares once more, and --every for ever: give one of them")
    show = partial(
        _show, config, every_table=not (tables or ignore), as_json=as_json, indent=2 if every is None else None
    )
    if repair:
        ctx.exit(EXIT_CODES[_repair(config, tables, ignore, patience=stall_timeout, as_json=as_json, show=show)])
    if every is None:
        report = compare(config, tables or None, ignored=ignore, patience=stall_timeout, log=KafkaLog(config))
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
    from connector.kafka.published_log import KafkaLog
    from connector.verify.watch import watch

    stop = stop_at_signals()
    metrics.serve(config.metrics)
    clock, log = SystemClock(), KafkaLog(config)
    return watch(
        config, tables or None, show, patience=patience, every=every, stop=stop, clock=clock, ignored=ignored, log=log
    )


def _repair(
    config: Config,
    tables: tuple[str, ...],
    ignored: tuple[str, ...],
    *,
    patience: float,
    as_json: bool,
    show: Callable[..., None],
) -> Verdict:
    """Compare, mend what differs, and compare the mended tables again; returns the verdict on all tables."""
    from connector.clock import SystemClock
    from connector.kafka.published_log import KafkaLog
    from connector.repair.mending import Mending
    from connector.repair.repairs import MOST_KEYS, Repairs, repaired_rows, repairs_of
    from connector.verify import Verdict
    from connector.verify import verify as compare

    clock, log = SystemClock(), KafkaLog(config)
    report = compare(config, tables or None, ignored=ignored, patience=patience, clock=clock, named=MOST_KEYS, log=log)
    found, left = Repairs(), dict[str, str]()
    if report.lags:
        left = {table.name: "the target was not at the source's position" for table in report.tables if not table.equal}
    elif report.verdict is Verdict.DIFFERENT:
        found = repairs_of(config, report, by=who(), now=clock.now())
        left = dict(found.refused)
    if not (as_json or report.equal):
        click.echo(_text(report))
    if found.requests:
        left |= Mending(config, patience=patience, clock=clock).mend(found.requests)
        again = compare(config, sorted(found.requests), patience=patience, clock=clock, log=log)
        later = {table.name: table for table in again.tables}
        report = replace(again, tables=tuple(later.get(one.name, one) for one in report.tables),
                         filtered=report.filtered, left_out=report.left_out)  # fmt: skip
    equal = {table.name for table in report.tables if table.equal}
    mended = {name: repaired_rows(rows) for name, rows in sorted(found.rows.items()) if name in equal}
    left = {name: why for name, why in left.items() if name not in equal}
    show(report, more={"repaired": mended, "not_repaired": left})
    return report.verdict


def _show(
    config: Config,
    report: Report,
    *,
    every_table: bool,
    as_json: bool,
    indent: int | None,
    more: dict[str, Any] | None = None,
) -> None:
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
        echo(f"marks of tables with skipped events cannot be removed: {error.message}")
    for one in cleared:
        echo(f"{one.schema}.{one.table} is equal again; marked since event {one.since}: {one.reason}")
    if as_json:
        shown = {"verdict": report.verdict, **asdict(report), **(more or {})}
        for difference in (one for table in shown["tables"] for one in table["differences"]):
            del difference["key"], difference["values"]
        click.echo(json.dumps(shown, indent=indent))
        return
    for name, rows in (more or {}).get("repaired", {}).items():
        click.echo(f"{name}: repaired ({', '.join(f'{count:,} {kind}' for kind, count in rows.items())})")
    for name, why in (more or {}).get("not_repaired", {}).items():
        click.echo(f"{name}: NOT repaired: {why}")
    click.echo(_text(report))


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
