"""Converts a fragment to a JSON object: text and numbers as in the log, bytes in hexadecimal."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import Any

from connector.inspect.formats.tungsten import present, time_of
from connector.inspect.thl_events.log import Listed


def as_object(listed: Listed, *, headers: bool = False, specs: bool = False, zone: tzinfo = UTC) -> dict[str, Any]:
    """Convert one fragment.

    Args:
        listed: the fragment.
        headers: True: without the changes.
        specs: True: with the columns of changed rows, as in schemas/fragment.avsc.
        zone: time zone of the commit time.
    """
    fragment = listed.fragment
    found: dict[str, Any] = {
        "seqno": fragment["seqno"],
        "fragno": fragment["fragno"],
        "lastFrag": fragment["last_frag"],
        "file": listed.place,
        "time": time_of(fragment["commit_time"], zone),
        "epoch": fragment["epoch"],
        "eventId": fragment["event_id"],
        "sourceId": fragment["source_id"],
        "gtid": fragment["gtid"],
        "kind": fragment["kind"],
        "shard": fragment["shard"],
        "metadata": fragment["metadata"],
    }
    if listed.voided:
        found["voided"] = True
    if not headers:
        found["changes"] = [_change(change, specs=specs) for change in fragment["changes"]]
    return found


def _change(change: dict[str, Any], *, specs: bool) -> dict[str, Any]:
    if "sql" in change:
        return {"schema": change["schema"], "sql": change["sql"], "options": change["options"]}
    columns = [column["name"] for column in change["columns"]]
    before, after = (present(change[f"{image}_present"], len(columns)) for image in ("before", "after"))
    return {
        "action": change["action"].upper(),
        "schema": change["schema"],
        "table": change["table"],
        **({"columns": change["columns"]} if specs else {}),
        "key": [columns[index] for index in change["key_columns"]],
        "rows": [
            {
                image: {columns[index]: _value(value) for index, value in zip(places, row[image], strict=True)}
                for image, places in (("before", before), ("after", after))
                if row[image] is not None
            }
            for row in change["rows"]
        ],
    }


def _value(value: object) -> object:
    return {"hex": value.hex()} if isinstance(value, bytes) else value
