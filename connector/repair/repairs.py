"""The repairs of what a comparison has found: the keys to ask the producer for, and what only a load mends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final

from connector.config.model import Config
from connector.errors import PreflightError, Unsupported
from connector.kafka.log_reader import LogReader
from connector.kafka.requests import new_load_id
from connector.log.epochs.control import ControlState
from connector.log.epochs.loads import LoadRequest, is_unfinished, outstanding
from connector.log.transaction.layout import TableName
from connector.mysql.server.connection import session
from connector.mysql.server.source_facts import read_facts
from connector.mysql.snapshot.information_schema import SourceTable, read_tables
from connector.mysql.snapshot.rows_by_key import Key, check_keys
from connector.mysql.transforms.filters import Filter
from connector.verify.report import DifferenceKind, Report, TableReport
from connector.verify.source import ComparedTable, SourceReader
from connector.verify.values import ComparedColumn, Form, ValueForm

MOST_KEYS: Final = 10_000  # of a table
MOST_BYTES: Final = 500_000  # of the keys of a table, in one message of Kafka
BY_ROW: Final = (DifferenceKind.MISSING, DifferenceKind.EXTRA, DifferenceKind.CHANGED)
LOADING: Final = "it is being loaded, which mends it"


@dataclass(frozen=True, slots=True)
class Repairs:
    """The repairs of the tables of a report, and the tables that have none.

    Args:
        requests: the repairs, by the tables' names.
        rows: the number of rows of each, by the kind of the difference.
        refused: the tables that are not repaired, with the reasons.
    """

    requests: dict[str, LoadRequest] = field(default_factory=dict)
    rows: dict[str, Mapping[DifferenceKind, int]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def repairs_of(config: Config, report: Report, *, by: str, now: int) -> Repairs:
    """The repairs of the differences that a comparison has found.

    Args:
        config: names the source, the log and the target.
        report: the comparison, which names up to `MOST_KEYS` differences of a table.
        by: the user who asks, user@host.
        now: µs since 1970 UTC.

    Raises:
        PreflightError: there is no log.
        SourceUnavailable, BrokerUnavailable: a server does not answer.
    """
    found = Repairs()
    with LogReader(config, high_watermark=True) as reader:
        control = reader.control()
    if control.log is None:
        raise PreflightError("there is no log that could bring the rows: thl produce", service=config.service)
    targets = (config.target.id,) if config.target.id else ()
    with session(config.source) as connection, closing(SourceReader(config.source)) as source:
        captured = Filter.of(config.source, read_facts(connection).lower_case_table_names)
        compared = {".".join(table.name): table for table in source.tables(captured)}
        published = Counter(table.target for table in compared.values())
        for table in (one for one in report.tables if not one.equal):
            try:
                one = _described(compared, table, published)
                (described,) = read_tables(connection, captured, TableName(*one.name))
                keys = _keys(table, one, described, control)
            except (Unsupported, PreflightError) as error:
                found.refused[table.name] = error.message
                continue
            found.rows[table.name] = Counter(difference.what for difference in table.differences)
            found.requests[table.name] = LoadRequest(
                table=described.layout.name,
                load=new_load_id(),
                asked_at=now,
                asked_by=by,
                published=one.target,
                targets=targets,
                keys=keys,
                key_columns=described.key_columns,
            )
    return found


def _described(
    compared: Mapping[str, ComparedTable], table: TableReport, published: Mapping[tuple[str, str], int]
) -> ComparedTable:
    """The table as it was compared.

    Raises:
        Unsupported: what differs is more than rows.
    """
    kinds = {difference.what for difference in table.differences}
    if DifferenceKind.LOADING in kinds:
        raise Unsupported(LOADING)
    if DifferenceKind.MORE in kinds:
        raise Unsupported(f"more than {MOST_KEYS:,} rows differ: thl load {table.name}")
    if table.name not in compared:
        raise Unsupported("the source has no such table")
    if DifferenceKind.EXCLUDED in kinds or not all(difference.row for difference in table.differences):
        raise Unsupported(f"what differs is the table as a whole: thl load {table.name}")
    found = compared[table.name]
    if not found.key or not kinds <= set(BY_ROW):
        raise Unsupported(f"it has no primary key: thl load {table.name}")
    if any(index in found.key for index, _ in found.changes):
        raise Unsupported(f"a rule of source.filters.tables changes its key: thl load {table.name}")
    if published[found.target] > 1:
        raise Unsupported(f"other tables are published under its name: thl load {table.name}")
    return found


def _keys(
    table: TableReport, compared: ComparedTable, described: SourceTable, control: ControlState
) -> tuple[Key, ...]:
    """The keys of the rows that differ.

    Raises:
        Unsupported, PreflightError: they cannot be repaired.
    """
    name = described.layout.name
    waiting = {request.table for request, _ in outstanding(control.load_requests.values(), control.loads)}
    state = control.loads.get(name)
    if name in waiting and not control.load_requests[name].keys:
        raise PreflightError(LOADING)
    if state is not None and is_unfinished(state, control.trapped):
        raise PreflightError(f"its load has begun and not ended: thl load {name}")
    columns = [compared.columns[index] for index in compared.key]
    keys = tuple(
        tuple(text_of(column, value) for column, value in zip(columns, difference.key, strict=True))
        for difference in table.differences
    )
    check_keys(described, keys)
    if sum(len(text.encode()) + 3 for key in keys for text in key) > MOST_BYTES:
        raise Unsupported(f"the keys of the rows that differ have more than {MOST_BYTES:,} bytes: thl load {name}")
    return keys


def text_of(column: ComparedColumn, value: Form) -> str:
    """A value of a key, as a request names it.

    Raises:
        Unsupported: it is none of a key.
    """
    if value is None:
        raise Unsupported(f"the target has a row whose key is NULL in {column.name}: delete it by hand")
    if column.kind is ValueForm.BYTES:
        return value.hex()
    return value.decode(errors="replace")


def repaired_rows(rows: Mapping[DifferenceKind, int]) -> dict[str, int]:
    """The number of rows by the kind of their difference, as it is shown."""
    return {kind.name.lower(): rows.get(kind, 0) for kind in BY_ROW}
