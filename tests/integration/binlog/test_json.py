"""JSON columns are decoded as the server prints them, byte for byte."""

from __future__ import annotations

import json
import random
import struct

from connector.log.transaction.position import AfterGtids
from tests.support.binlog import read_from, row_changes
from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer

SCHEMA = "capture_json"

SQL_VALUES = [
    "'null'",
    "'true'",
    "'[]'",
    "'{}'",
    "'\"\"'",
    "'0'",
    "'-0.0'",
    "'[1, -1, 32767, -32768, 32768, 65535, 65536, -2147483648, 4294967295, 4294967296]'",
    "'[9223372036854775807, -9223372036854775808, 18446744073709551615, 18446744073709551616]'",
    '\'{"b": 1, "a": {"": [null, true, false]}, "aa": "x"}\'',
    """'"quote \\\\" back \\\\\\\\ slash / control \\\\u0001\\\\u001f\\\\b\\\\f\\\\n\\\\r\\\\t del \\\\u007f"'""",
    '\'["h\u00e9", "\u20ac", "\U0001f600"]\'',
    "json_array(cast('12.50' as decimal(10,2)), cast('-0.000000000000000000000000000001' as decimal(65,30)))",
    "json_array(cast('0' as decimal(3,0)), cast('99999999999999999999999999999999999' as decimal(40,0)))",
    "json_array(cast('2024-02-29 01:02:03.000400' as datetime(6)), cast('2024-02-29' as date))",
    "json_array(cast('-838:59:59' as time), cast('01:02:03.5' as time(1)), cast('00:00:00' as time))",
    "json_array(timestamp'2001-01-01 00:00:00', time'100:00:00')",
    "json_array(x'00ff', b'101', cast('text' as binary))",
    "json_object('long', repeat(x'80', 200))",
    "json_object('geo', point(1, 2), 'year', cast(2024 as year))",
    "json_array(repeat('x', 126), repeat('y', 127), repeat('z', 128), repeat('\u00e9', 20000))",
    "concat(repeat('[', 100), repeat(']', 100))",
    "concat('[', repeat('1,', 40000), '2]')",
    "concat('{', repeat('\"k\":1,', 3), '\"z\":[70000, 3000000000, -5]}')",
    "json_object('big', json_array(repeat('x', 70000), 1, -1, 70000, 4294967295, -2147483648, true, null))",
]
DOUBLES = [
    1.0, -1.5, 0.1, 1e15, 1e14, 123456789012345.6, 999999999999999.9, 1e16, 1e20, 1.5e300, 5e-324, 1e-5, 1e-14, 1e-15,
    1.234e-15, 1.7976931348623157e308, 2.2250738585072014e-308, 100000000000000.02, 4503599627370496.5, 1 / 3,
]  # fmt: skip


def test_every_json_value_arrives_as_the_server_prints_it(mysql_server: SqlServer) -> None:
    """Constants of every kind, and some thousand doubles of every size."""
    draw = random.Random(7411)
    doubles = DOUBLES + [
        value
        for value in (struct.unpack("<d", draw.randbytes(8))[0] for _ in range(2000))
        if value - value == 0 and abs(value) > 1e-300
    ]
    doubles += [draw.uniform(1e15, 9.1e15) for _ in range(500)]
    doubles += [draw.uniform(-1, 1) * 10 ** draw.randrange(-20, 20) for _ in range(2000)]
    connection = connect(mysql_server)
    cursor = connection.cursor()
    cursor.execute(f"DROP DATABASE IF EXISTS {SCHEMA}")
    cursor.execute(f"CREATE DATABASE {SCHEMA}")
    cursor.execute(f"CREATE TABLE {SCHEMA}.j (id int auto_increment primary key, v json)")
    cursor.execute("SELECT @@GLOBAL.gtid_executed")
    start = cursor.fetchone()[0]
    for value in SQL_VALUES:
        cursor.execute(f"INSERT INTO {SCHEMA}.j (v) VALUES ({value})")
    texts = [json.dumps(doubles[at : at + 50]) for at in range(0, len(doubles), 50)]
    cursor.executemany(f"INSERT INTO {SCHEMA}.j (v) VALUES (%s)", [(text,) for text in texts])
    cursor.execute(f"SELECT CAST(v AS CHAR CHARACTER SET utf8mb4) FROM {SCHEMA}.j ORDER BY id")
    said = [row[0] for row in cursor.fetchall()]
    connection.close()

    found = read_from(mysql_server, AfterGtids(start), lambda found: len(row_changes(found, "j")) >= len(said))

    arrived = [after[1] for _, _, after in row_changes(found, "j") if after]
    for ours, theirs in zip(arrived, said, strict=True):
        assert ours == theirs
