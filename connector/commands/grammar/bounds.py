"""The bounds of `--from-X` and `--to-X`, which several commands have: position, time, GTID, tables; click callbacks."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from connector.log.transaction.layout import TableName
    from connector.log.transaction.position import SourcePosition


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
BEGIN: Final = "Where to begin"
END: Final = "Where to end"
TIME: Final = "ISO 8601; UTC unless it names a zone"


def position(_: click.Context, option: click.Parameter, value: str | None) -> SourcePosition | None:
    """FILE:POS of a binary log."""
    from connector.log.transaction.position import SourcePosition

    if value is None:
        return None
    file, colon, offset = value.rpartition(":")
    if not (file and colon and offset.isascii() and offset.isdecimal()):
        raise click.BadParameter(f"{value!r} is not FILE:POS, as in binlog.000002:4", param=option)
    return SourcePosition(file, int(offset))


def tables(_: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[TableName, ...]:
    """SCHEMA.TABLE, of a repeatable option."""
    from connector.log.transaction.layout import TableName

    found = []
    for value in values:
        schema, dot, table = value.partition(".")
        if not (schema and dot and table):
            raise click.BadParameter(f"{value!r} is not SCHEMA.TABLE", param=option)
        found.append(TableName(schema, table))
    return tuple(found)


def timestamp(_: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """A time in ISO 8601, UTC unless it names a zone; as µs since 1970."""
    if value is None:
        return None
    try:
        return microseconds(value, UTC)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a time like 2026-11-21T06:00:00Z", param=option) from error


def microseconds(value: str, zone: tzinfo) -> int:
    """A time in ISO 8601 as µs since 1970 UTC, of the zone unless it names one.

    Raises:
        ValueError: it is no time.
    """
    found = datetime.fromisoformat(value)
    elapsed = (found if found.tzinfo else found.replace(tzinfo=zone)) - EPOCH
    return (elapsed.days * 86400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds


def lower_case(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """A GTID in lower case, as logs have it."""
    return value and value.strip().lower()


def gtid(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A single GTID, as logs have it."""
    from connector.errors import Unsupported
    from connector.log.gtid.source_gtids import parse_gtids

    if value is None:
        return None
    try:
        found = parse_gtids(value)
        if found.contains(str(found)):
            return str(found)
    except Unsupported as error:
        raise click.BadParameter(
            f"{value!r} is not one GTID, as in uuid:7, uuid:tag:7 or 0-1-7", param=option
        ) from error
    raise click.BadParameter(f"{value!r} is no GTID", param=option)
