"""A log with a table, and one whose epochs have other filters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from connector.log.ids import Action
from connector.log.transaction.layout import TableName
from tests.unit.producer.records.event_log import CREATE, LAYOUT, MASK, Log, filtered, rows


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path / "store")
    made.ddl(CREATE)
    yield made
    made.completion.close()


@pytest.fixture
def masked(tmp_path: Path) -> Iterator[Log]:
    """Two tables; the epochs 2 to 4 mask a column, leave a table out, and mask nothing again."""
    made = Log(tmp_path / "store", epochs=filtered({}, MASK, {"ignore": ["shop.t"]}, {}))
    for name in ("t", "n"):
        made.ddl(CREATE.replace("shop.t", f"shop.{name}"))
        layout = replace(LAYOUT, name=TableName("shop", name))
        made.event(rows(Action.INSERT, (None, {0: 1, 1: 10, 2: "clear"}), layout=layout))
    yield made
    made.close()
