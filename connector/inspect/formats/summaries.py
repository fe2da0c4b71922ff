"""Formats fragments as Tungsten's `-headers`, `-sizes` and `-sql` do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, tzinfo
from typing import Final

from connector.errors import escaped
from connector.inspect.formats.tungsten import ListedFragment, or_null, shown_text, time_of

SIZES_HEAD: Final = "SEQ# Frag# Tstamp"


def header_line(listed: ListedFragment, *, zone: tzinfo = UTC) -> str:
    """Eight fields, each ended by a tab: seqno, epoch, fragno, last, time, event id, source id, a comment."""
    fragment = listed.fragment
    found = (
        fragment["seqno"],
        fragment["epoch"],
        fragment["fragno"],
        "true" if fragment["last_frag"] else "false",
        time_of(fragment["commit_time"], zone),
        or_null(fragment["event_id"]),
        fragment["source_id"],
        "voided" if listed.voided else "",
    )
    return "".join(f"{value}\t" for value in found)


def sizes_line(listed: ListedFragment, *, zone: tzinfo = UTC) -> str:
    """The size of a fragment: bytes of its statements, number of its rows."""
    fragment = listed.fragment
    changes = fragment["changes"]
    sql = sum(len(change["sql"].encode()) for change in changes if "sql" in change)
    rows = sum(len(change["rows"]) for change in changes if "rows" in change)
    return (
        f"{fragment['seqno']} {fragment['fragno']} {time_of(fragment['commit_time'], zone)} "
        f"Event total: {len(changes)} chunks {sql} bytes in SQL statements {rows} rows"
    )


def sql_lines(listed: ListedFragment) -> Iterator[str]:
    """The statements of a fragment, each ended by a semicolon; rows, which have no statement, as a comment."""
    seqno = listed.fragment["seqno"]
    schema = ""
    for change in listed.fragment["changes"]:
        if "sql" not in change:
            table = escaped(f"{change['schema']}.{change['table']}").replace("*/", "* /")
            yield f"/* SEQ# = {seqno}: {len(change['rows'])} rows of {table}, {change['action'].upper()} */"
            continue
        if change["schema"] not in {"", schema}:
            schema = change["schema"]
            yield f"USE `{escaped(schema).replace('`', '``')}`;"
        sql = shown_text(change["sql"])
        yield sql if sql.endswith(";") else f"{sql};"
