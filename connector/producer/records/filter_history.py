"""The filters of a log's epochs: the tables whose rows a later epoch publishes otherwise.

The log's epochs have the filters under which each event was published, so the store remembers none: the epoch of its
last event says which those of its rows are. Each change of filters in between counts, also that of an epoch without
events: while a table was left out, its rows changed unseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pydantic import SecretStr, ValidationError

from connector.config.filters import MIN_HASH_KEY, Filters
from connector.log.epochs.control import EpochRecord
from connector.log.ids import Epoch
from connector.log.transaction.layout import Column, TableName
from connector.mysql.transforms.table_rules import RuledColumns
from connector.producer.records.source_rules import SourceRule, SourceRules
from connector.targets.table import Table

Treatment = object
"""What filters make of rows; comparable."""


class FilterHistory:
    """The filters of a log's epochs.

    Args:
        epochs: the epochs, ascending. Later ones are of the same producer, whose filters stay the same.
    """

    def __init__(self, epochs: Sequence[EpochRecord] = ()) -> None:
        self._epochs = epochs

    def changed(self, tables: Iterable[Table], after: Epoch, upto: Epoch) -> Iterator[tuple[TableName, str]]:
        """The tables whose rows one of these epochs publishes otherwise than the epoch before it, each with the reason.

        Args:
            tables: as they were published in the epoch `after`.
            after, upto: the epochs.
        """
        left = list(tables)
        for before, now in pairwise(one for one in self._epochs if after <= one.epoch <= upto):
            if not left or _is_same(before, now):
                continue
            old, new = _capture_of(before), _capture_of(now)
            other = [table for table in left if old is None or new is None or old.of(table) != new.of(table)]
            left = [table for table in left if table not in other]
            for table in other:
                yield table.name, f"source.filters publish it otherwise since event {now.first_seqno}"


def _is_same(before: EpochRecord, now: EpochRecord) -> bool:
    if before.capture is not None and now.capture is not None:
        return before.capture == now.capture
    return before.filters is None or now.filters is None or before.filters == now.filters


class _Capture:
    """What the filters of an epoch make of tables."""

    def __init__(self, filters: Filters, capture: Mapping[str, Any]) -> None:
        self._rules = SourceRules(filters)
        self._hash_key = capture.get("hash_key")  # its digest
        self._ignored = capture.get("ignore_server_ids")

    def of(self, table: Table) -> Treatment:
        """The treatment of a table.

        Args:
            table: as it is published, perhaps by other filters.
        """
        return self._ignored, [
            (one.folded, one.name, one.actions, [self._column(column, one) for column in table.columns])
            for one in self._rules.of(table.name)
        ]

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
        return source, "zero dates" if columns.nulls(source, column.type.partition("(")[0]) else None


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
