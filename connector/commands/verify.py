"""`thl verify`: whether source and target are equal."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config import Config
    from connector.verify import Report

DIFFERENT = 9
SHOWN = 20


@click.command()
@configured
@click.option("--table", "tables", multiple=True, metavar="SCHEMA.TABLE", help="Only this one; can be repeated.")
@click.option("--patience", default=10.0, show_default=True, help="Seconds to wait for a target that does not move.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def verify(ctx: click.Context, config: Config, tables: tuple[str, ...], patience: float, as_json: bool) -> None:
    """Compare every table of source and target at one seqno, value by value.

    Exits with 9 when something differs. Takes no locks; reads every row of both. Of tables that an event was left out
    for (thl apply --skip-seqno) the mark is taken away where they are equal.
    """
    from connector.errors import PreflightError
    from connector.verify import verify as compare
    from connector.write.open import open_desk

    report = compare(config, tables or None, patience=patience)
    equal = {table.name for table in report.tables if table.equal}
    try:
        with open_desk(config.target) as desk:
            cleared = desk.found_equal(
                config.service, equal, report.seqno, every=not tables and report.equal and not report.filtered
            )
    except PreflightError as error:
        cleared = []
        click.echo(f"marks of tables that an event was left out for stay: {error.message}", err=True)
    for one in cleared:
        click.echo(f"{one.schema}.{one.table} is equal again; noted since event {one.since}: {one.because}", err=True)
    click.echo(json.dumps(asdict(report), indent=2) if as_json else _text(report))
    ctx.exit(0 if report.equal else DIFFERENT)


def _text(report: Report) -> str:
    lines = []
    for table in report.tables:
        lines.append(f"{table.name}: {table.rows:,} rows, {'equal' if table.equal else 'DIFFERENT'}")
        lines += [f"  {difference}" for difference in table.differences[:SHOWN]]
        if len(table.differences) > SHOWN:
            lines.append(f"  … and {len(table.differences) - SHOWN} more")
    lines += [f"{name}: not compared, a rule of source.filters.tables makes another of it" for name in report.filtered]
    if not report.equal and not report.exact:
        lines.append("the target did not have exactly what the source had: what differs may be on its way")
    state = "equal" if report.equal else "NOT equal"
    return "\n".join([*lines, f"source and target are {state} at seqno {report.seqno}"])
