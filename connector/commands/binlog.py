"""`thl binlog`: what binary log files hold, without a server and without Kafka."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from connector.commands.arguments import folded, moment, position

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connector.log.transaction.batch import TransactionStart
    from connector.log.transaction.position import SourcePosition
    from connector.mysql.binlog.log_files import LogFile
    from connector.mysql.binlog.log_reader import Gap

PIECE_BYTES = 1 << 20
QUERY_BYTES = 4096
LARGEST_EVENT = 256 << 20
NAMED = 20  # XA transactions


@click.command("binlog")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["json", "thl"]),
    default="json",
    show_default=True,
    help="One JSON object a transaction and line, or Tungsten's layout.",
)
@click.option("--from-position", callback=position, metavar="FILE:POS", help="Transactions that begin there or later.")
@click.option("--to-position", callback=position, metavar="FILE:POS", help="Transactions that begin before.")
@click.option("--from-gtid", callback=folded, metavar="GTID", help="That transaction and those behind it in the log.")
@click.option("--to-gtid", callback=folded, metavar="GTID", help="That transaction and those before it in the log.")
@click.option("--from-time", callback=moment, metavar="TIME", help="Transactions committed then or later (ISO, UTC).")
@click.option("--to-time", callback=moment, metavar="TIME", help="Transactions committed before.")
@click.option("--do", multiple=True, metavar="PATTERN", help="Only tables like this: schema or schema.table, * and ?.")
@click.option("--ignore", multiple=True, metavar="PATTERN", help="Not tables like this; wins over --do.")
@click.option(
    "--keep-invalid-text",
    multiple=True,
    metavar="PATTERN",
    help="Print text that is not valid in its character set as bytes: schema.table.column, * and ?.",
)
@click.option(
    "--rows-query",
    "rows_query_bytes",
    type=click.IntRange(min=0, max=1 << 30),
    default=QUERY_BYTES,
    show_default=True,
    metavar="BYTES",
    help="Print so much of the statement that made rows, where the log has it; 0: nothing.",
)
@click.option(
    "--largest-event",
    type=click.IntRange(min=1 << 20, max=1 << 30),
    default=LARGEST_EVENT,
    show_default=True,
    metavar="BYTES",
    help="A larger event in a compressed transaction is an error: a few kB can stand for a gigabyte.",
)
@click.option("--stop-after", type=click.IntRange(min=1), metavar="N", help="At most N transactions.")
@click.option("--salvage", is_flag=True, help="Go on behind damage; what is left out is told, the exit code stays.")
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
    """Print the transactions of binary log files, in the order in which the files are named.

    A FILE may be compressed by gzip or zstd, a folder (its files by their numbers), or `-` (standard input). Only
    whole transactions are printed, numbered from 0. At damage everything before it is printed, then one message says
    what is wrong, and where.
    """
    from connector.config.model import Filters
    from connector.errors import CorruptBinlog
    from connector.inspect.formats.json_event import JsonPrinter
    from connector.inspect.formats.tungsten_event import TungstenPrinter
    from connector.inspect.selection import Range, Selection
    from connector.inspect.transactions import Printer, Transactions
    from connector.mysql.binlog.log_files import log_files
    from connector.mysql.binlog.log_reader import LogReading, read_log
    from connector.mysql.transforms.filters import Filter

    wanted = Range(**bounds)
    selection = Selection(wanted)
    gaps: list[Gap] = []

    def tell(gap: Gap) -> None:
        gaps.append(gap)
        click.echo(f"thl: left out {gap.end - gap.start} bytes, from {gap.start} to {gap.end}: {gap.error}", err=True)

    filters = Filter(
        Filters(do=do, ignore=ignore),
        keep_invalid_text=keep_invalid_text,
        keeps_statements=True,
        rows_query_bytes=rows_query_bytes,
        largest_event=largest_event,
        system_schemas=True,
    )
    reading = LogReading(filters, PIECE_BYTES, sys.stdin.buffer, tell if salvage else None)
    out = sys.stdout.buffer
    printer: Printer = JsonPrinter() if layout == "json" else TungstenPrinter()
    transactions = Transactions(printer, selection, out)
    try:
        for file in _between(log_files(files), wanted.from_position, wanted.to_position):
            selection.file(file.name)
            for item in read_log(file, reading):
                if not transactions.take(item):
                    break
            if selection.over:
                break
    finally:
        out.flush()
    if transactions.prepared and not selection.over:
        _tell_prepared(transactions.prepared)
    selection.check()
    if gaps:
        raise CorruptBinlog(
            f"{sum(gap.end - gap.start for gap in gaps)} bytes were left out at {len(gaps)} damaged places",
            printed=transactions.printed,
        )


def _tell_prepared(prepared: Mapping[str, TransactionStart]) -> None:
    """XA transactions that these files neither commit nor roll back."""
    click.echo(f"thl: {len(prepared)} XA transactions are prepared and not decided in these files", err=True)
    for xid, begin in list(prepared.items())[:NAMED]:
        click.echo(f"thl:   {xid} at {begin.start}{f' gtid {begin.gtid}' if begin.gtid else ''}", err=True)
    if len(prepared) > NAMED:
        click.echo("thl:   …", err=True)


def _between(files: list[LogFile], start: SourcePosition | None, end: SourcePosition | None) -> list[LogFile]:
    """The files from that of one position to that of the other."""
    from connector.errors import ConfigError

    names = [file.name for file in files]
    for option, bound in (("--from-position", start), ("--to-position", end)):
        if bound is not None and names.count(bound.file) != 1:
            raise ConfigError(f"{option}: {bound.file} is {names.count(bound.file)} of these files", files=len(names))
    return files[names.index(start.file) if start else 0 : names.index(end.file) + 1 if end else None]
