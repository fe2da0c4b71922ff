"""Messages of the event topic as Arrow batches, the form that the scanner reads."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final

import pyarrow as pa

from connector.kafka.consumer import KafkaMessage

_COLUMNS: Final[Mapping[str, pa.DataType]] = {
    "partition": pa.int32(),
    "offset": pa.int64(),
    "value": pa.large_binary(),
}
MESSAGES_SCHEMA: Final = pa.schema(_COLUMNS)


def batch_of(messages: Sequence[KafkaMessage]) -> pa.RecordBatch:
    """Messages in the columns of `MESSAGES_SCHEMA`."""
    return message_batch(
        [message.partition for message in messages],
        [message.offset for message in messages],
        [message.value for message in messages],
    )


def message_batch(partitions: Iterable[int], offsets: Iterable[int], values: Sequence[bytes | None]) -> pa.RecordBatch:
    """The columns of messages as a batch.

    Made of buffers: `pyarrow.array` imports pandas (0.8 s).
    """
    known = [value or b"" for value in values]
    present = None if None not in values else pa.py_buffer(_present(values))
    ends = array("q", accumulate(map(len, known), initial=0))
    columns = (
        [None, pa.py_buffer(array("i", partitions))],
        [None, pa.py_buffer(array("q", offsets))],
        [present, pa.py_buffer(ends), pa.py_buffer(b"".join(known))],
    )
    kinds = zip(MESSAGES_SCHEMA.types, columns, strict=True)
    arrays = [pa.Array.from_buffers(kind, len(values), buffers) for kind, buffers in kinds]
    return pa.RecordBatch.from_arrays(arrays, schema=MESSAGES_SCHEMA)


def _present(values: Sequence[bytes | None]) -> bytes:
    """The bitmap of the values that are not None, as Arrow has it: the first is the lowest bit of the first byte."""
    bits = bytearray(-(-len(values) // 8))
    for at, value in enumerate(values):
        if value is not None:
            bits[at >> 3] |= 1 << (at & 7)
    return bytes(bits)
