"""What several commands take: a place in the source's binary log, a time, a GTID; as click's callbacks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from connector.log.transaction.layout import TableName
    from connector.log.transaction.position import SourcePosition


def position(_: click.Context, option: click.Parameter, value: str | None) -> SourcePosition | None:
    """FILE:POS."""
    from connector.log.transaction.position import SourcePosition

    if value is None:
        return None
    file, colon, offset = value.rpartition(":")
    if not (file and colon and offset.isascii() and offset.isdecimal()):
        raise click.BadParameter(f"{value!r} is not FILE:POS, as in binlog.000002:4", param=option)
    return SourcePosition(file, int(offset))


def tables(_: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[TableName, ...]:
    """SCHEMA.TABLE, any number of times."""
    from connector.log.transaction.layout import TableName

    found = []
    for value in values:
        schema, dot, table = value.partition(".")
        if not (schema and dot and table):
            raise click.BadParameter(f"{value!r} is not SCHEMA.TABLE", param=option)
        found.append(TableName(schema, table))
    return tuple(found)


def moment(_: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """ISO 8601, UTC where it names no zone; as µs since 1970."""
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a time like 2026-11-21T06:00:00Z", param=option) from error
    elapsed = (found if found.tzinfo else found.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (elapsed.days * 86400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds


def folded(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """A GTID as logs have it: in lower case."""
    return value and value.strip().lower()


def gtid(_: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """One GTID, as logs have it."""
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
