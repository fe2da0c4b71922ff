"""The filters of a log's epochs: the tables whose rows a later epoch publishes otherwise.

The log's epochs have the filters under which each event was published, so the store remembers none: the epoch of its
last event says which those of its rows are. Each change of filters in between counts, also that of an epoch without
events: while a table was left out, its rows changed unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from pydantic import SecretStr, ValidationError

from connector.config.filters import MIN_HASH_KEY, Filters
from connector.errors import ConnectorError
from connector.log.epochs.control import EpochRecord
from connector.log.gtid.source_gtids import parse_gtids
from connector.log.ids import Epoch
from connector.log.transaction.layout import Column, TableName
from connector.mysql.transforms.filters import CASCADES
from connector.mysql.transforms.table_rules import RuledColumns
from connector.producer.records.source_rules import SourceRule, SourceRules
from connector.targets.table import Table

Treatment = object
"""What filters make of rows; comparable."""


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """A table whose rows later filters publish otherwise.

    Args:
        name: the table.
        why: the reason.
        followed: its definitions were published all the time.
    """

    name: TableName
    why: str
    followed: bool


class FilterHistory:
    """The filters of a log's epochs.

    Args:
        epochs: the epochs, ascending. Later ones are of the same producer, whose filters stay the same.
    """

    def __init__(self, epochs: Sequence[EpochRecord] = ()) -> None:
        self._epochs = epochs

    def changed(self, tables: Iterable[Table], after: Epoch, upto: Epoch) -> Iterator[ChangedTable]:
        """The tables whose rows one of these epochs publishes otherwise than the epoch before it.

        Args:
            tables: as they were published in the epoch `after`.
            after, upto: the epochs.
        """
        found: dict[TableName, ChangedTable] = {}
        tables = list(tables)
        for before, now in pairwise(one for one in self._epochs if after <= one.epoch <= upto):
            if before.has_filters(now.filters, now.capture):
                continue
            old, new = _capture_of(before), _capture_of(now)
            for table in tables:
                followed = _agree(old, new, _Capture.seen, table)
                if followed and _agree(old, new, _Capture.columns, table):
                    continue
                why = f"source.filters publish it otherwise since event {now.first_seqno}"
                first = found.get(table.name, ChangedTable(table.name, why, followed))
                found[table.name] = replace(first, followed=first.followed and followed)
        yield from found.values()

    def since_prepared(self, tables: Iterable[Table], prepared: str, upto: Epoch) -> Iterator[ChangedTable]:
        """The tables whose rows were published otherwise when an XA transaction was prepared.

        Args:
            tables: as they are published now.
            prepared: the GTID of its XA PREPARE; else something else, and any earlier epoch may have prepared it.
            upto: the epoch of its XA COMMIT.
        """
        epochs = [one for one in self._epochs if one.epoch <= upto]
        if all(before.has_filters(now.filters, now.capture) for before, now in pairwise(epochs)):
            return iter(())
        first = next((one for one in reversed(epochs) if _is_before(one, prepared)), epochs[0])
        return self.changed(tables, first.epoch, upto)


def _is_before(epoch: EpochRecord, gtid: str) -> bool:
    """True if an epoch is known to have begun before a transaction was read."""
    try:
        return epoch.gtid_set is not None and gtid not in parse_gtids(epoch.gtid_set)
    except (ConnectorError, ValueError):
        return False


class _Capture:
    """The treatment of tables by the filters of an epoch."""

    def __init__(self, filters: Filters, capture: Mapping[str, Any]) -> None:
        self._rules = SourceRules(filters)
        self._hash_key = capture.get("hash_key")  # its digest
        self._unseen = capture.get("ignore_server_ids"), capture.get(CASCADES)

    def seen(self, table: Table) -> Treatment:
        """The treatment of its changes, and of those of its definition: whether they are seen."""
        return self._unseen, [(one.folded, one.name, one.actions) for one in self._rules.of(table.name)]

    def columns(self, table: Table) -> Treatment:
        """The treatment of its columns.

        Args:
            table: as it is published, perhaps by other filters.
        """
        return [[self._column(column, one) for column in table.columns] for one in self._rules.of(table.name)]

    def _column(self, column: Column, ruled: SourceRule) -> Treatment:
        source = ruled.column(column.name)
        if source is None or ruled.rule is None:
            return source, None
        columns = RuledColumns(ruled.rule)
        if columns.drops(source):
            return source, "dropped"
        mask = columns.mask(source)
        if mask is not None:
            return source, (mask.model_dump_json(), self._hash_key if mask.hash is not None else None)
        return source, "zero dates" if columns.nulls(source, column.base) else None


def _agree(
    old: _Capture | None, new: _Capture | None, treatment: Callable[[_Capture, Table], Treatment], table: Table
) -> bool:
    """True if filters that are both known give a table the same treatment."""
    return old is not None and new is not None and treatment(old, table) == treatment(new, table)


def _capture_of(epoch: EpochRecord) -> _Capture | None:
    """The filters of an epoch; None: they are not recorded, or this version cannot read them."""
    if epoch.capture is None:
        return None
    key = SecretStr("-" * MIN_HASH_KEY)  # the key is not recorded: its digest is compared
    try:
        filters = Filters.model_validate({**epoch.capture["filters"], "hash_key": key})
    except (KeyError, TypeError, ValidationError):
        return None
    return _Capture(filters, epoch.capture)
