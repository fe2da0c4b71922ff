"""schemas/fragment.example.json is a valid fragment of schemas/fragment.avsc in Avro's JSON encoding."""

import io
import json
import zlib
from array import array
from pathlib import Path
from typing import Any

import fastavro

from connector.log.ids import Action, Epoch, Kind, Outcome, Seqno
from connector.log.transaction.batch import Rows, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.position import SourcePosition
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from tests.support.encoding import ROW, SCHEMA

EXAMPLE = Path(__file__).parents[4] / "schemas" / "fragment.example.json"

ORDERS = TableLayout(
    TableName("shop", "orders"),
    (
        Column("id", "bigint", unsigned=True, nullable=False),
        Column("total", "decimal(12,2)", nullable=False),
        Column("state", "enum", charset="utf8mb4", labels=("new", "paid")),
        Column("placed", "datetime(6)"),
        Column("weight", "double"),
        Column("token", "binary(4)", charset="binary"),
    ),
    (0,),
)
BEFORE = [7, "19.99", "new", "2026-11-21 06:00:00.000000", 0.5, b"\x00\x01\xfe\xff"]
AFTER = [7, "19.99", "paid", "2026-11-21 06:00:00.000000", None, b"\x00\x01\xfe\xff"]


def encoded() -> bytes:
    """What the encoder makes of one UPDATE of one row."""
    row = io.BytesIO()
    fastavro.schemaless_writer(row, ROW, {"before": BEFORE, "after": AFTER})
    start, end = SourcePosition("mysql-bin.000002", 1501), SourcePosition("mysql-bin.000002", 2081)
    piece = TransactionBatch(
        TransactionStart(1, 1748, "3e11fa47-71ca-11e1-9e33-c80aa9429562:23", 41, 42, start, Kind.TRANSACTION),
        [Rows(ORDERS, Action.UPDATE, row.getvalue(), array("Q", [len(row.getvalue())]))],
        TransactionEnd(end, 1795240800000000, Outcome.COMMIT),
    )
    limits = Limits(fragment=65536, shard=1 << 20, message=1 << 20)
    encoder = Encoder(service="shop", source_id="mysql.example:3306", partitions=1, limits=limits)
    encoder.begin(Numbering(epoch=Epoch(3), next_seqno=Seqno(41), tails={0: Seqno(40)}, last_barrier=Seqno(12)))
    (fragment,) = encoder.encode(piece)
    return fragment.value


def test_the_documented_example_equals_the_encoder_s_output() -> None:
    # The reader wants a record a line.
    (example,) = fastavro.json_reader(io.StringIO(json.dumps(json.loads(EXAMPLE.read_text()))), SCHEMA)
    body = encoded()[10:]
    assert example == fastavro.schemaless_reader(io.BytesIO(body), SCHEMA, None)
    assert int.from_bytes(_crc(example), "big") == zlib.crc32(body[:-4])


def _crc(example: Any) -> bytes:
    return bytes(example["crc32"])
