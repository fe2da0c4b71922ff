"""Batches of messages are what pyarrow makes of their columns, and nothing that applies imports pandas."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from connector.kafka.message_batch import MESSAGES_SCHEMA, message_batch

MESSAGES = st.lists(
    st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1), st.none() | st.binary(max_size=20)), max_size=20
)
# Imports what the applier and a worker import, makes a batch, cuts it, and makes a segment of it.
APPLYING = """
import sys
import connector.applier.applier
from connector.kafka.message_batch import message_batch
from connector.spark.stream.parts import Batch, since
from connector.spark.stream.segment_builder import SegmentBuilder
batch = message_batch([0, 0], [5, 6], [None, None])
builder = SegmentBuilder("t", 0)
builder.add(batch)
assert since(batch, 6).num_rows == 1 and builder.finish()[0]["value"].null_count == 2
assert Batch.of([batch]).messages == 2
assert "pandas" not in sys.modules
"""


@given(MESSAGES)
def test_a_batch_is_what_pyarrow_makes_of_the_columns(messages: list[tuple[int, int, bytes | None]]) -> None:
    columns = [list(column) for column in zip(*messages, strict=True)] or [[], [], []]
    made = message_batch(*columns)
    made.validate(full=True)
    assert made.schema == MESSAGES_SCHEMA
    assert made.to_pydict() == dict(zip(MESSAGES_SCHEMA.names, columns, strict=True))
    arrays = [pa.array(column, kind) for column, kind in zip(columns, MESSAGES_SCHEMA.types, strict=True)]
    assert made.equals(pa.RecordBatch.from_arrays(arrays, schema=MESSAGES_SCHEMA))


def test_the_applier_imports_no_pandas() -> None:
    done = subprocess.run([sys.executable, "-c", APPLYING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
