"""`thl binlog`: prints binary log files, without a server and without Kafka."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from connector.commands.grammar.bounds import BEGIN, END, TIME, lower_case, position, timestamp
from connector.commands.grammar.command import NEW_LAYOUT, command, option
from connector.commands.grammar.options import OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from connector.errors import ConnectorError
    from connector.inspect.binlog_events.printing import EventChoice
    from connector.inspect.transactions import Formatter
    from connector.log.transaction.batch import TransactionStart
    from connector.log.transaction.position import SourcePosition
    from connector.mysql.binlog.events.capture_filter import CaptureFilter
    from connector.mysql.binlog.log_files import LogFile
    from connector.mysql.binlog.log_reader import Gap

BATCH_BYTES = 1 << 20
QUERY_BYTES = 4096
LARGEST_EVENT = 256 << 20
NAMED = 20  # XA transactions
TABLES = "Tables"
EVENTS = "Events"
DAMAGE = "Damage"


@command(
    "binlog",
    earlier={"--format": NEW_LAYOUT},
    examples={
        "thl binlog mysql-bin.000002": "All its transactions as JSON, one a line.",
        "thl binlog --format tungsten --do shop mysql-bin.0*": "The transactions of one schema.",
        "thl binlog --from-time 2026-11-21T06:00 --stop-after 5 folder/": "Five transactions from then on.",
        "thl binlog --format sql mysql-bin.000002": "SQL to execute elsewhere with `mysql --binary-mode --comments`.",
        "thl binlog --events --type GTID --type XID mysql-bin.000002": "Events as the format has them.",
    },
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option(
    "--format",
    "layout",
    section=OUTPUT,
    type=click.Choice(["text", "json", "tungsten", "sql"]),
    help="One JSON object per transaction and line (default), Tungsten's layout, or SQL that MySQL's client executes. "
    "With --events: text (default) or JSON.",
)
@option(
    "--load-folder",
    section=OUTPUT,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="With --format sql: write the files there that LOAD DATA reads.",
)
@option(
    "--skip-gtids",
    section=OUTPUT,
    is_flag=True,
    help="With --format sql: transactions get new GTIDs where they are executed. Without it they keep theirs, and a "
    "MySQL that has them already executes nothing.",
)
@option(
    "--events",
    section=EVENTS,
    is_flag=True,
    help="Print events, not transactions: all fields of every event, as the format has them.",
)
@option(
    "--type",
    "types",
    section=EVENTS,
    multiple=True,
    metavar="NAME",
    help="With --events: only this type (GTID, QUERY …, or its number). Repeatable.",
)
@option(
    "--server-id",
    "server_ids",
    section=EVENTS,
    multiple=True,
    type=click.IntRange(min=0, max=(1 << 32) - 1),
    metavar="ID",
    help="With --events: only of this server. Repeatable.",
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
    "--to-time",
    section=END,
    callback=timestamp,
    metavar="TIME",
    help=f"Transactions committed at TIME or earlier ({TIME}); mysqlbinlog's --stop-datetime leaves out those at TIME.",
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
    layout: str | None,
    load_folder: Path | None,
    skip_gtids: bool,
    events: bool,
    types: tuple[str, ...],
    server_ids: tuple[int, ...],
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
    from connector.inspect.selection import Selection, SelectionBounds
    from connector.inspect.terminal import output
    from connector.inspect.transactions import TransactionPrinter
    from connector.mysql.binlog.log_files import log_files
    from connector.mysql.binlog.log_reader import LogReading, read_log
    from connector.mysql.transforms.filters import Filter

    _check(layout, {"--load-folder": load_folder, "--skip-gtids": skip_gtids},
           {"--type": types, "--server-id": server_ids}, {"--do": do, "--ignore": ignore}, events=events)  # fmt: skip
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
        replays=layout == "sql",
        shows=True,
    )
    found = _between(log_files(files), chosen.from_position, chosen.to_position)
    out = output()
    if events:
        choice = _event_choice(types, server_ids, bounds)
        printed = _print_events(found, filters, choice, gaps if salvage else None, as_json=layout == "json")
        _check_gaps(gaps, printed)
        return
    reading = LogReading(
        filters, BATCH_BYTES, sys.stdin.buffer, _reporter(gaps) if salvage else None, _in_use_reporter()
    )
    printer = _formatter(layout, load_folder, gtids=not skip_gtids)
    transactions = TransactionPrinter(printer, selection, out)
    try:
        for file in found:
            selection.file(file.name)
            for item in read_log(file, reading):
                if not transactions.accept(item):
                    break
            if selection.over:
                break
        out.write(transactions.end())
    finally:
        out.flush()
    if transactions.prepared and not selection.over:
        _name_prepared(transactions.prepared)
    selection.check()
    _check_gaps(gaps, transactions.printed)


def _check(
    layout: str | None,
    of_sql: Mapping[str, object],
    of_events: Mapping[str, object],
    of_transactions: Mapping[str, object],
    *,
    events: bool,
) -> None:
    """Check that options fit each other.

    Raises:
        ConfigError: they do not.
    """
    from connector.errors import ConfigError

    if events and layout in {"sql", "tungsten"}:
        raise ConfigError(f"--events has no --format {layout}", hint="text or json")
    if layout == "text" and not events:
        raise ConfigError("--format text is for --events", hint="json, tungsten or sql; or add --events")
    for given, needed, fits in ((of_sql, "--format sql", layout == "sql"), (of_events, "--events", events)):
        for name, value in given.items():
            if value and not fits:
                raise ConfigError(f"{name} is for {needed}")
    for name, value in of_transactions.items():
        if value and events:
            raise ConfigError(f"{name} is for transactions, not for --events")


def _formatter(layout: str | None, load_folder: Path | None, *, gtids: bool) -> Formatter:
    """The formatter of transactions."""
    from connector.inspect.formats.json_transaction import JsonPrinter
    from connector.inspect.formats.sql_transaction import SqlPrinter
    from connector.inspect.formats.tungsten_transaction import TungstenPrinter

    if layout == "sql":
        return SqlPrinter(load_folder, gtids=gtids)
    return TungstenPrinter() if layout == "tungsten" else JsonPrinter()


def _event_choice(types: tuple[str, ...], server_ids: tuple[int, ...], bounds: Mapping[str, Any]) -> EventChoice:
    """The chosen events.

    Raises:
        ConfigError: a bound is for transactions, or a type is not known.
    """
    from connector.errors import ConfigError
    from connector.inspect.binlog_events.printing import EventChoice, event_codes

    for name in ("from_gtid", "to_gtid"):
        if bounds[name] is not None:
            raise ConfigError(f"--{name.replace('_', '-')} is for transactions, not for --events")
    rest = {name: value for name, value in bounds.items() if not name.endswith("_gtid")}
    return EventChoice(codes=event_codes(types), server_ids=frozenset(server_ids), **rest)


def _check_gaps(gaps: list[Gap], printed: int) -> None:
    """Raise CorruptBinlog if something was left out."""
    from connector.errors import CorruptBinlog

    if gaps:
        left_out = sum(gap.end - gap.start for gap in gaps)
        raise CorruptBinlog(f"{left_out} bytes were left out at {len(gaps)} damaged places", printed=printed)


def _print_events(
    files: list[LogFile], filters: CaptureFilter, choice: EventChoice, gaps: list[Gap] | None, *, as_json: bool
) -> int:
    """Print the chosen events of files; return their number.

    Args:
        gaps: receives what is left out; None: damage ends the events.
    """
    from connector.inspect.binlog_events.fields import EventFields
    from connector.inspect.binlog_events.printing import EventPrinter
    from connector.inspect.binlog_events.walk import walk
    from connector.inspect.terminal import output
    from connector.mysql.binlog.log_reader import Gap

    out = output()

    def report(file: LogFile, error: ConnectorError, start: int, end: int) -> None:
        error.hint = error.file_hint
        _reporter([] if gaps is None else gaps)(Gap(file, start, end, error))

    leave_out = None if gaps is None else report
    printer = EventPrinter(EventFields(filters), choice, out, as_json=as_json, leave_out=leave_out)
    in_use = _in_use_reporter()
    try:
        for file in files:
            if not printer.accept(walk(file, sys.stdin.buffer, filters.largest_event, in_use, leave_out)):
                break
    finally:
        out.flush()
    return printer.printed


def _in_use_reporter() -> Callable[[LogFile], None]:
    """A function that prints once for each file that its server has not closed it."""
    reported: set[str] = set()

    def report(file: LogFile) -> None:
        if str(file) not in reported:
            reported.add(str(file))
            click.echo(f"thl: {file} is marked as in use: its server is writing it, or died while writing", err=True)

    return report


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
