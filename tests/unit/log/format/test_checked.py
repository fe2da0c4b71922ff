"""Values of decoded records are of their declared types."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from connector.log.epochs.control import EpochRecord
from connector.log.format.checked import record
from connector.log.ids import Epoch, Seqno

MADE = EpochRecord(
    epoch=Epoch(1), first_seqno=Seqno(0), source_id="db:3306", server_uuid="u", started=1, reason="online"
)


def test_the_filters_that_a_producer_writes_may_be_any_json() -> None:
    capture = {"do": ["shop"], "ignore": [], "case": None, "tables": [{"match": ["a.*"], "drop": []}], "n": 1}
    written = replace(MADE, capture=capture)
    assert record(written) is written


def test_field_of_another_type_is_refused_by_name() -> None:
    with pytest.raises(TypeError) as wrong:
        record(replace(MADE, source_id=7))  # type: ignore[arg-type]
    assert wrong.value.args[0].split()[0] == "source_id"


def test_text_that_no_database_takes_is_refused() -> None:
    with pytest.raises(TypeError, match="source_id"):
        record(replace(MADE, source_id=json.loads('"\\ud800"')))
