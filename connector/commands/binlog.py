"""`thl binlog`: prints binary log files, without a server and without Kafka."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from connector.commands.grammar.bounds import BEGIN, END, TIME, lower_case, position, timestamp
from connector.commands.grammar.command import NEW_LAYOUT, command, option
from connector.commands.grammar.options import OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from connector.log.transaction.batch import TransactionStart
    from connector.log.transaction.position import SourcePosition
    from connector.mysql.binlog.log_files import LogFile
    from connector.mysql.binlog.log_reader import Gap

BATCH_BYTES = 1 << 20
QUERY_BYTES = 4096
LARGEST_EVENT = 256 << 20
NAMED = 20  # XA transactions
TABLES = "Tables"
DAMAGE = "Damage"


@command(
    "binlog",
    earlier={"--format": NEW_LAYOUT},
    examples={
        "thl binlog mysql-bin.000002": "All its transactions as JSON, one a line.",
        "thl binlog --format tungsten --do shop mysql-bin.0*": "The transactions of one schema.",
        "thl binlog --from-time 2026-11-21T06:00 --stop-after 5 folder/": "Five transactions from then on.",
    },
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option(
    "--format",
    "layout",
    section=OUTPUT,
    type=click.Choice(["json", "tungsten"]),
    default="json",
    show_default=True,
    help="One JSON object per transaction and line, or Tungsten's layout.",
)
@option(
    "--rows-query",
    "rows_query_bytes",
    section=OUTPUT,
    type=click.IntRange(min=0, max=1 << 30),
    default=QUERY_BYTES,
    show_default=True,
    metavar="BYTES",
    help="Print up to this many bytes of the statement that changed the rows, if the binary log has it; 0: none.",
)
@option(
    "--keep-invalid-text",
    section=OUTPUT,
    multiple=True,
    metavar="PATTERN",
    help="Print text that is invalid in its character set as bytes: schema.table.column, with * and ?. Repeatable.",
)
@option(
    "--from-position",
    section=BEGIN,
    callback=position,
    metavar="FILE:POS",
    help="Transactions that begin at this position or later.",
)
@option(
    "--from-gtid",
    section=BEGIN,
    callback=lower_case,
    metavar="GTID",
    help="This transaction and those after it in the binary log.",
)
@option(
    "--from-time",
    section=BEGIN,
    callback=timestamp,
    metavar="TIME",
    help=f"Transactions committed at TIME or later ({TIME}).",
)
@option(
    "--to-position",
    section=END,
    callback=position,
    metavar="FILE:POS",
    help="Transactions that begin before this position.",
)
@option(
    "--to-gtid",
    section=END,
    callback=lower_case,
    metavar="GTID",
    help="This transaction and those before it in the binary log.",
)
@option(
    "--to-time", section=END, callback=timestamp, metavar="TIME", help=f"Transactions committed before TIME ({TIME})."
)
@option("--stop-after", section=END, type=click.IntRange(min=1), metavar="N", help="At most N transactions.")
@option(
    "--do",
    section=TABLES,
    multiple=True,
    metavar="PATTERN",
    help="Only tables that match: schema or schema.table, with * and ?. Repeatable.",
)
@option(
    "--ignore",
    section=TABLES,
    multiple=True,
    metavar="PATTERN",
    help="No tables that match (schema or schema.table, with * and ?); takes precedence over --do. Repeatable.",
)
@option(
    "--largest-event",
    section=DAMAGE,
    type=click.IntRange(min=1 << 20, max=1 << 30),
    default=LARGEST_EVENT,
    show_default=True,
    metavar="BYTES",
    help="Refuse larger events in compressed transactions: a few kB can decompress to a gigabyte.",
)
@option(
    "--salvage",
    section=DAMAGE,
    is_flag=True,
    help="Continue after damage; what is left out is reported, and the exit code is still that of damage.",
)
def binlog(
    files: tuple[str, ...],
    *,
    layout: str,
    do: tuple[str, ...],
    ignore: tuple[str, ...],
    keep_invalid_text: tuple[str, ...],
    salvage: bool,
    rows_query_bytes: int,
    largest_event: int,
    **bounds: Any,
) -> None:
    """Print the transactions of binary log files, in the order of the files given.

    A FILE may be compressed with gzip or zstd, a folder (its files in the order of their numbers), or `-` (standard
    input). Only complete transactions are printed, numbered from 0. At damage everything before it is printed, then an
    error with the position and the cause.
    """
    from connector.config.filters import Filters
    from connector.errors import CorruptBinlog
    from connector.inspect.formats.json_event import JsonPrinter
    from connector.inspect.formats.tungsten_event import TungstenPrinter
    from connector.inspect.selection import Selection, SelectionBounds
    from connector.inspect.transactions import Formatter, TransactionPrinter
    from connector.mysql.binlog.log_files import log_files
    from connector.mysql.binlog.log_reader import LogReading, read_log
    from connector.mysql.transforms.filters import Filter

    chosen = SelectionBounds(**bounds)
    selection = Selection(chosen)
    gaps: list[Gap] = []
    filters = Filter(
        Filters(do=do, ignore=ignore),
        keep_invalid_text=keep_invalid_text,
        keeps_statements=True,
        rows_query_bytes=rows_query_bytes,
        largest_event=largest_event,
        system_schemas=True,
    )
    reading = LogReading(filters, BATCH_BYTES, sys.stdin.buffer, _reporter(gaps) if salvage else None)
    out = sys.stdout.buffer
    printer: Formatter = JsonPrinter() if layout == "json" else TungstenPrinter()
    transactions = TransactionPrinter(printer, selection, out)
    try:
        for file in _between(log_files(files), chosen.from_position, chosen.to_position):
            selection.file(file.name)
            for item in read_log(file, reading):
                if not transactions.accept(item):
                    break
            if selection.over:
                break
    finally:
        out.flush()
    if transactions.prepared and not selection.over:
        _name_prepared(transactions.prepared)
    selection.check()
    if gaps:
        left_out = sum(gap.end - gap.start for gap in gaps)
        raise CorruptBinlog(
            f"{left_out} bytes were left out at {len(gaps)} damaged places", printed=transactions.printed
        )


def _reporter(gaps: list[Gap]) -> Callable[[Gap], None]:
    """A function that prints a gap and adds it to the others."""

    def report(gap: Gap) -> None:
        gaps.append(gap)
        click.echo(f"thl: left out {gap.end - gap.start} bytes, from {gap.start} to {gap.end}: {gap.error}", err=True)

    return report


def _name_prepared(prepared: Mapping[str, TransactionStart]) -> None:
    """Name the XA transactions that these files neither commit nor roll back."""
    click.echo(
        f"thl: {len(prepared)} XA transactions are pending: no XA COMMIT or XA ROLLBACK in these files",
        err=True,
    )
    for xid, begin in list(prepared.items())[:NAMED]:
        click.echo(f"thl:   {xid} at {begin.start}{f' gtid {begin.gtid}' if begin.gtid else ''}", err=True)
    if len(prepared) > NAMED:
        click.echo("thl:   …", err=True)


def _between(files: list[LogFile], start: SourcePosition | None, end: SourcePosition | None) -> list[LogFile]:
    """The files between two positions, the files of both included."""
    from connector.errors import ConfigError

    names = [file.name for file in files]
    for name, bound in (("--from-position", start), ("--to-position", end)):
        if bound is not None and names.count(bound.file) != 1:
            raise ConfigError(
                f"{name}: {names.count(bound.file)} of these files are called {bound.file}", files=len(names)
            )
    return files[names.index(start.file) if start else 0 : names.index(end.file) + 1 if end else None]
