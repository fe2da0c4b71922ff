"""Converts columns to Debezium's envelope: Kafka Connect's schema, and the value as Connect's JSON.

Debezium's MySQL connector documents the types ("Data type mappings"); these are its defaults, except where those lose
values: `bigint unsigned` is a Decimal (`bigint.unsigned.handling.mode=precise`), and invalid dates are refused instead
of becoming null. Connect's JsonConverter writes bytes in base64, and a Decimal as the big-endian bytes of its unscaled
value.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from connector.log.transaction.layout import Column

Converted = Callable[[Any], Any]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = date(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_TIME: Final = re.compile(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_SIZES: Final = re.compile(r"([a-z]+)(?:\((\d+)(?:,\s*(\d+))?\))?")
_SRID: Final = 4  # bytes before the WKB of a geometry, little-endian
_BYTES: Final = frozenset(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"))
_GEOMETRY: Final = frozenset(
    ("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
     "geometrycollection", "geomcollection")
)  # fmt: skip
_WHOLE: Final = {  # signed, unsigned
    "tinyint": ("int16", "int16"),
    "smallint": ("int16", "int32"),
    "mediumint": ("int32", "int32"),
    "int": ("int32", "int64"),
    "bigint": ("int64", ""),
}


@dataclass(frozen=True, slots=True)
class ConnectType:
    """The Connect type of a column.

    Args:
        schema: Connect's schema, without `field` and `optional`.
        value: converts the log's JSON to Connect's; raises ValueError if Connect cannot hold the value.
    """

    schema: Mapping[str, Any]
    value: Converted


def connect_type(column: Column) -> ConnectType:
    """Return the Connect type of a column of the log."""
    found = _SIZES.match(column.type)
    base, first, second = found.groups() if found else (column.type, None, None)
    if base in _WHOLE:
        type_ = _WHOLE[base][column.unsigned]
        return ConnectType({"type": type_}, _unchanged) if type_ else _decimal(20, 0)
    if base in _GEOMETRY:
        fields = [_field({"type": "bytes"}, "wkb"), _field({"type": "int32"}, "srid", optional=True)]
        return ConnectType({**_named("struct", "io.debezium.data.geometry.Geometry"), "fields": fields}, _geometry)
    if base in _BYTES:
        return ConnectType({"type": "bytes"}, _base64)
    match base:
        case "year":
            return ConnectType(_named("int32", "io.debezium.time.Year"), _unchanged)
        case "decimal":
            return _decimal(int(first or 10), int(second or 0))
        case "float" | "double":
            return ConnectType({"type": base}, _unchanged)
        case "bit" if int(first or 1) == 1:
            return ConnectType({"type": "boolean"}, lambda value: _raw(value) != b"\0")
        case "bit":
            parameters = {"length": str(first)}
            return ConnectType({**_named("bytes", "io.debezium.data.Bits"), "parameters": parameters}, _bits)
        case "date":
            return ConnectType(_named("int32", "io.debezium.time.Date"), _days)
        case "datetime" if int(first or 0) <= 3:
            return ConnectType(_named("int64", "io.debezium.time.Timestamp"), lambda text: _micros(text) // 1000)
        case "datetime":
            return ConnectType(_named("int64", "io.debezium.time.MicroTimestamp"), _micros)
        case "timestamp":
            return ConnectType(_named("string", "io.debezium.time.ZonedTimestamp"), _zoned)
        case "time":
            return ConnectType(_named("int64", "io.debezium.time.MicroTime"), _duration)
        case "json":
            return ConnectType(_named("string", "io.debezium.data.Json"), _text)
        case "enum" | "set":
            name = f"io.debezium.data.{'Enum' if base == 'enum' else 'EnumSet'}"
            return ConnectType({**_named("string", name), "parameters": {"allowed": ",".join(column.labels)}}, _text)
        case "vector":
            items = {"type": "float", "optional": False}
            return ConnectType({**_named("array", "io.debezium.data.FloatVector"), "items": items}, _vector)
    return ConnectType({"type": "string"}, _text)


def _field(schema: Mapping[str, Any], name: str, *, optional: bool = False) -> dict[str, Any]:
    return {**schema, "optional": optional, "field": name}


def _named(type_: str, name: str) -> dict[str, Any]:
    return {"type": type_, "name": name, "version": 1}


def _decimal(precision: int, scale: int) -> ConnectType:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
    schema = {**_named("bytes", "org.apache.kafka.connect.data.Decimal"), "parameters": parameters}

    def value(found: Any) -> str:
        sign, digits, exponent = Decimal(_number(found)).as_tuple()
        if exponent != -scale:
            raise ValueError(f"not {scale} digits after the decimal point")
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        size = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
        return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()

    return ConnectType(schema, value)


def _number(found: Any) -> str | int:
    if not isinstance(found, str | int):
        raise ValueError("not a number")  # noqa: TRY004 (callers expect ValueError for such values)
    return found


def _unchanged(value: Any) -> Any:
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("bytes that are invalid in the column's character set")  # noqa: TRY004 (as above)
    return value


def _base64(value: Any) -> str:
    return str(value["base64"])


def _raw(value: Any) -> bytes:
    return base64.b64decode(value["base64"])


def _bits(value: Any) -> str:
    """Convert to Debezium's Bits, which are little-endian."""
    return base64.b64encode(_raw(value)[::-1]).decode()


def _geometry(value: Any) -> dict[str, Any]:
    raw = _raw(value)
    (srid,) = struct.unpack_from("<i", raw)
    return {"wkb": base64.b64encode(raw[_SRID:]).decode(), "srid": srid or None}


def _vector(value: Any) -> list[float]:
    raw = _raw(value)
    return list(struct.unpack(f"<{len(raw) // 4}f", raw))


def _days(text: Any) -> int:
    return (date.fromisoformat(_text(text)) - _DAY).days


def _datetime(text: Any) -> datetime:
    return datetime.fromisoformat(_text(text)).replace(tzinfo=UTC)


def _micros(text: Any) -> int:
    return (_datetime(text) - _EPOCH) // _MICROSECOND


def _zoned(text: Any) -> str:
    _datetime(text)
    return f"{text[:10]}T{text[11:]}Z"


def _duration(text: Any) -> int:
    found = _TIME.fullmatch(_text(text))
    if found is None:
        raise ValueError("not a time")
    sign, hours, minutes, seconds, fraction = found.groups()
    micros = (int(hours) * 3600 + int(minutes) * 60 + int(seconds)) * 1_000_000 + int((fraction or "").ljust(6, "0"))
    return -micros if sign else micros
