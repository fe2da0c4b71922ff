"""Converts the changes of one table to columns of the table's own types."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, from_json, struct, unbase64, when
from pyspark.sql.types import (
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from connector.config.model import Config
from connector.errors import ConfigError
from connector.kafka.log_reader import LogReader
from connector.log.transaction.layout import Column, TableLayout, TableName

_WHOLE: Final[Mapping[str, tuple[DataType, DataType]]] = {  # signed, unsigned
    "tinyint": (ByteType(), ShortType()),
    "smallint": (ShortType(), IntegerType()),
    "mediumint": (IntegerType(), IntegerType()),
    "int": (IntegerType(), LongType()),
    "bigint": (LongType(), DecimalType(20, 0)),
}
_OTHERS: Final[Mapping[str, DataType]] = {
    "year": IntegerType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "datetime": TimestampNTZType(),
    "timestamp": TimestampType(),
}
_BYTES: Final = frozenset(
    ("bit", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector", "geometry", "point",
     "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection",
     "geomcollection")
)  # fmt: skip
_LARGEST_DECIMAL: Final = 38
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_IN_JSON: Final = StructType([StructField("base64", StringType())])

# A value that the type cannot hold (0000-00-00) ends the query instead of becoming null. TIMESTAMPs are in UTC.
_PARSING: Final = {"mode": "FAILFAST", "timeZone": "UTC"}
_HEAD: Final = (
    "seqno", "change", "epoch", "commit_time", "event_id", "gtid", "snapshot", "load", "load_part", "action",
)  # fmt: skip


def typed(changes: DataFrame, layout: TableLayout) -> DataFrame:
    """Return the changes of one table with images as structs.

    Args:
        changes: the result of `read_thl` or `stream_thl`.
        layout: the table's columns, from `layout_of` or `layout_in`.

    Returns:
        The columns seqno, change, epoch, commit_time, event_id, gtid, snapshot, load, load_part, action, before, after.
        A column that is missing in an image (binlog_row_image, or an earlier layout of the table) is null. DECIMAL of
        more than 38 digits, TIME and JSON stay strings. An invalid date ends the query with an error. A load's
        beginning (action `statement`) and its end (no action) are rows without images.
    """
    schema, table = layout.name
    found = changes.where((col("schema") == schema) & (col("table") == table))
    return found.select(*_HEAD, *(_image(name, layout).alias(name) for name in ("before", "after")))


def layout_of(config: Config, schema: str, table: str) -> TableLayout:
    """Return a table's current layout in the log's control topic.

    Raises:
        ConfigError: the control topic does not have the table or its columns (MariaDB).
    """
    with LogReader(config) as log:
        control = log.control() if log.partitions(config.control_topic) else None
    tables = control.tables.tables if control is not None and control.tables is not None else {}
    found = tables.get(TableName(schema, table))
    if found is None or not found.layout.columns:
        raise ConfigError(
            f"the log's control topic does not have the columns of {schema}.{table}",
            hint="layout_in reads them from changes that were read with layout=True",
            service=config.service,
        )
    return found.layout


def layout_in(changes: DataFrame, schema: str, table: str) -> TableLayout:
    """Return a table's layout in its newest change.

    Args:
        changes: the result of `read_thl` with `layout=True`.
        schema, table: the table's name.

    Raises:
        ConfigError: the changes have none of this table.
    """
    found = changes.where((col("schema") == schema) & (col("table") == table) & col("layout").isNotNull())
    newest = found.orderBy(col("seqno").desc(), col("change").desc()).select("layout", "key").first()
    if newest is None:
        raise ConfigError(f"no change of {schema}.{table} was read")
    return layout_from(TableName(schema, table), newest["layout"], newest["key"])


def layout_from(name: TableName, layout: str, key: str) -> TableLayout:
    """Return a table's layout from the columns `layout` and `key` of a change."""
    columns = tuple(Column(**{**column, "labels": tuple(column["labels"])}) for column in _list(layout))
    names = [column.name for column in columns]
    return TableLayout(name, columns, tuple(names.index(one) for one in _list(key)))


def spark_type(column: Column) -> DataType | None:
    """Return the Spark type of a column; None for bytes."""
    base = re.split(r"[( ]", column.type, maxsplit=1)[0]
    if base in _BYTES:
        return None
    if base in _WHOLE:
        return _WHOLE[base][column.unsigned]
    if found := _DECIMAL.match(column.type):
        digits, scale = int(found[1]), int(found[2])
        return DecimalType(digits, scale) if digits <= _LARGEST_DECIMAL else StringType()
    return _OTHERS.get(base, StringType())


def _image(name: str, layout: TableLayout) -> Expression:
    types = [(column.name, spark_type(column)) for column in layout.columns]
    schema = StructType([StructField(column, _IN_JSON if type_ is None else type_) for column, type_ in types])
    parsed = from_json(col(name), schema, _PARSING)
    if all(type_ is not None for _, type_ in types):
        return parsed
    fields = [
        (unbase64(parsed.getField(column).getField("base64")) if type_ is None else parsed.getField(column)).alias(
            column
        )
        for column, type_ in types
    ]
    return when(col(name).isNotNull(), struct(*fields))


def _list(text: str) -> list[Any]:
    found: list[Any] = json.loads(text)
    return found
