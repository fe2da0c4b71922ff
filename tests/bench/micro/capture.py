"""Benchmarks from a source's bytes to transaction batches with rows in Avro."""

from __future__ import annotations

import struct
from functools import partial

from connector.config.filters import Filters
from connector.mysql.values.text_rows import TextRows
from tests.bench.micro import inputs
from tests.bench.micro.registry import Work, micro, named
from tests.support.binlog_writer import ColumnDef

ROWS, COLUMNS = 500, 8
UTF8MB4, LATIN1, BINARY = 255, 8, 63
TEXT = "Übergröße, 12 Stück – naïve façade ".encode("cp1252")
# {"a": 1, "b": "text", "c": [1, 2]}: a small object, its keys, two inlined numbers, a string, a small array
JSON = bytes.fromhex(
    "00 0300 2b00 1900 0100 1a00 0100 1b00 0100 05 0100 0c 1c00 02 2100 61 62 63 04 74657874 0200 0a00 05 0100 05 0200"
)

FAMILIES: dict[str, tuple[list[ColumnDef], list[bytes]]] = {
    "ints": (
        [ColumnDef(code, unsigned=unsigned) for unsigned in (False, True) for code in (1, 2, 3, 8)],
        [struct.pack(form, 17 * 2 ** (8 * size - 8)) for form, size in (("<b", 1), ("<h", 2), ("<i", 4), ("<q", 7))]
        * 2,
    ),
    "decimal": ([ColumnDef(246, b"\x12\x04", unsigned=False)] * COLUMNS, [inputs.decimal_18_4(987_654_321)] * COLUMNS),
    "temporal": (
        [ColumnDef(18, b"\x06"), ColumnDef(17, b"\x00"), ColumnDef(19, b"\x03"), ColumnDef(10)] * 2,
        [inputs.datetime_6(1_234_567), struct.pack(">I", 1_767_225_600), b"\x80\xc8\x12\x04\xb0", b"\x5d\xd4\x0f"] * 2,
    ),
    "latin1": ([ColumnDef(15, b"\x78\x00", collation=LATIN1)] * COLUMNS, [bytes([len(TEXT)]) + TEXT] * COLUMNS),
    "utf8mb4": (
        [ColumnDef(15, b"\x90\x01", collation=UTF8MB4)] * COLUMNS,
        [struct.pack("<H", 36) + b"all of these are seven-bit letters. "] * COLUMNS,
    ),
    "blob": (
        [ColumnDef(252, b"\x02", collation=BINARY)] * COLUMNS,
        [struct.pack("<H", 64) + bytes(range(64))] * COLUMNS,
    ),
    "json": ([ColumnDef(245, b"\x04")] * COLUMNS, [struct.pack("<I", len(JSON)) + JSON] * COLUMNS),
}


def _values(family: str) -> Work:
    columns, values = FAMILIES[family]
    log = inputs.column_log(columns, [values] * ROWS)
    return lambda: inputs.read_all(log)


for _family in FAMILIES:
    named(f"capture.values_{_family}", partial(_values, _family), "value", ROWS * COLUMNS)


@micro("event", 13 * inputs.SMALL + 1)
def frames_of_file() -> Work:
    """Splits events and checks their checksums, nothing else: the table is not captured."""
    log, filters = inputs.small_log(), Filters(ignore=["s.t"])
    return lambda: inputs.read_all(log, filters=filters)


@micro("event", 13 * inputs.SMALL + 1)
def frames_of_packets() -> Work:
    """The same from MySQL's packets, some of which have to be joined."""
    packets, filters = inputs.as_packets(inputs.small_log()), Filters(ignore=["s.t"])
    return lambda: inputs.read_all(packets, packets=True, filters=filters)


@micro("transaction", inputs.SMALL)
def small_transactions() -> Work:
    packets = inputs.as_packets(inputs.small_log())
    return lambda: inputs.read_all(packets, packets=True)


@micro("row", inputs.LARGE)
def large_transaction() -> Work:
    packets = inputs.as_packets(inputs.large_log())
    return lambda: inputs.read_all(packets, packets=True)


@micro("row", 1000)
def snapshot_rows() -> Work:
    """Rows of the text protocol, as the initial load reads them."""
    fields = [b"1234567", b"-42", b"12345.6789", b"0.3333333333", b"2026-01-02 03:04:05.678901", b"g" * 96, b"h" * 20]
    payload = b"".join(bytes([len(field)]) + field for field in fields) + b"\xfb"
    packets = b"".join(len(payload).to_bytes(3, "little") + bytes([n & 0xFF]) + payload for n in range(1000))

    def work() -> int:
        rows = TextRows("iisdsssb", 0)
        rows.feed(packets)
        rows.decode(1000, 1 << 30)
        return len(rows.drain()[1])

    return work
