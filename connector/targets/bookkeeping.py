"""The columns of the applier's bookkeeping tables, for every kind of target.

- `thl_position`: one row per service: its position, and the fencing token of the applier that owns it.
- `thl_tables`: the tables that the applier created, as the source defines them.
- `thl_applied`: one row per applied event if `target.audit` is on; written in the transaction that applied it.
- `thl_skipped`: every skipped event, with the user and the reason.
- `thl_inconsistent`: the tables that may differ from the source, until `thl verify` finds them equal.
- `thl_excluded`: the excluded tables, with their first event, the user and the reason.
- `thl_loading`: the tables that are being loaded. `consistent` in `thl_position` is false while there are some, and
  theirs says whether it is false for another reason, too.
- `thl_identity`: a random name of the target, by which a relay knows it.
- `thl_claim`: the token of the last claim, and the random mark of the applier that made it.
- `thl_rewound`: the last event that a target had before a rewind, until it is applied again.
- `thl_intent`: the commit that several writers make, until all have made their part.
- `thl_channels`: one row per writer: the last event of the last commit of which it made a part.

`schema_version` in `thl_position` is what a connector has to know to go on from there. Every version refuses a number
above `SCHEMA_VERSION`, its own, and so an older version does not harm what it would not notice.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from connector.errors import ConfigError, Fenced
from connector.log.compact.net_changes import AppliedEvent, LeftOut
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import Intent, TargetPosition
from connector.targets.operations import Value
from connector.targets.target_schema import Excluded, LoadContent, Loading, TargetSchema

POSITION: Final = (
    "log_id",
    "seqno",
    "epoch",
    "source_id",
    "event_id",
    "gtid_set",
    "offsets",
    "consistent",
    "commit_time",
)
"""The columns of `thl_position` that hold a `TargetPosition`; also service, token, applied_at and schema_version."""

BASE_VERSION: Final = 1
"""The `schema_version` of a target without an open intent and without a table being loaded."""

SCHEMA_VERSION: Final = 4
"""The newest `schema_version` that this version of the connector knows."""

BY_HAND: Final = "done by hand: "
"""The prefix of the reason in `thl_skipped` for an event that a user has applied by hand."""


def version_of(*, intent: bool, loading: bool) -> int:
    """The `schema_version` of a target.

    Args:
        intent: a commit of several writers is open: `thl_intent` has to be known.
        loading: a table is being loaded: `thl_loading` has to be known.
    """
    if intent:
        return SCHEMA_VERSION if loading else 2
    return 3 if loading else BASE_VERSION


def check_schema_version(service: str, version: int) -> None:
    """Check that this version of the connector knows what a target's position needs.

    Raises:
        ConfigError: a newer version wrote it; nothing was changed.
    """
    if version > SCHEMA_VERSION:
        raise ConfigError(
            f"the target needs a newer version of the connector: its schema version is {version}, and this one knows "
            f"{SCHEMA_VERSION}",
            hint="start the version of thl that wrote to this target last, or a later one",
            service=service,
            schema_version=version,
            known=SCHEMA_VERSION,
        )


def fenced(service: str, token: int) -> Fenced:
    """The error of an applier whose target a newer one has claimed."""
    return Fenced(
        "a newer `thl apply` or `thl undo` has claimed the target",
        hint="one applier writes a target; start this one again if the other has ended",
        service=service,
        token=token,
    )


def last_token(previous_token: int, mark: str, claims: Sequence[Sequence[object]]) -> int:
    """The token that an applier's own last claim left: of a claim whose answer was lost it does not know it.

    Args:
        previous_token: that it knows of; 0: it has claimed nothing yet.
        mark: the applier's.
        claims: token and mark of the row of `thl_claim`, if there is one. An older version leaves the row as it is, and
            its token is then no longer the target's.
    """
    return next((int(str(token)) for token, made in claims if previous_token and made == mark), previous_token)


def position_values(position: TargetPosition) -> tuple[Value, ...]:
    """The values of the columns `POSITION`."""
    return (
        position.log_id,
        position.seqno,
        position.epoch,
        position.source_id,
        position.event_id,
        position.gtid_set,
        _offsets_text(position),
        position.consistent,
        position.commit_time,
    )


def position_from(service: str, row: Sequence[object], head: object = None) -> TargetPosition:
    """The position in the columns `POSITION`, and in `head` of `thl_rewound` (None if there is no row)."""
    log_id, seqno, epoch, source_id, event_id, gtid_set, offsets, consistent, commit_time = row
    return TargetPosition(
        service=service,
        log_id=LogId(str(log_id)),
        seqno=Seqno(int(str(seqno))),
        epoch=Epoch(int(str(epoch))),
        source_id=str(source_id),
        event_id=str(event_id),
        gtid_set=None if gtid_set is None else str(gtid_set),
        offsets={int(partition): int(offset) for partition, offset in json.loads(str(offsets)).items()},
        consistent=bool(consistent),
        commit_time=int(str(commit_time)),
        rewound_from=NO_SEQNO if head is None else Seqno(int(str(head))),
    )


INTENT: Final = (
    "log_id",
    "first_seqno",
    "last_seqno",
    "epoch",
    "offsets",
    "consistent",
    "writers",
    "hash_version",
    "undivided",
)
"""The columns of `thl_intent` after the service. `consistent` is that of the position before the commit."""


def intent_values(intent: Intent, position: TargetPosition, *, consistent: bool) -> tuple[Value, ...]:
    """The values of the columns `INTENT`.

    Args:
        intent: the commit.
        position: the position after it.
        consistent: whether the target is consistent before it.
    """
    return (
        intent.log_id,
        intent.first,
        intent.last,
        intent.epoch,
        _offsets_text(position),
        consistent,
        intent.writers,
        intent.hash_version,
        json.dumps(sorted(intent.undivided)),
    )


def intent_query(parameter: str) -> str:
    """The query for the intent of a service, which `intent_from` reads.

    Args:
        parameter: `?` or `%s`, which stands for the service.
    """
    columns = ", ".join(f"i.{column}" for column in INTENT)
    made = "thl.thl_channels AS c ON c.service = i.service AND c.seqno = i.last_seqno"
    return f"SELECT {columns}, c.channel FROM thl.thl_intent AS i LEFT JOIN {made} WHERE i.service = {parameter}"


def intent_from(rows: Sequence[Sequence[object]]) -> tuple[Intent, bool]:
    """The intent, and whether the target was consistent before it.

    Args:
        rows: the columns `INTENT`, with the number of a writer that has made its part; None: none has.
    """
    log_id, first, last, epoch, _, consistent, writers, hash_version, undivided, _ = rows[0]
    intent = Intent(
        log_id=LogId(str(log_id)),
        first=Seqno(int(str(first))),
        last=Seqno(int(str(last))),
        epoch=Epoch(int(str(epoch))),
        writers=int(str(writers)),
        hash_version=int(str(hash_version)),
        undivided=frozenset(TableName(*name) for name in json.loads(str(undivided))),
        committed=frozenset(int(str(row[-1])) for row in rows if row[-1] is not None),
    )
    return intent, bool(consistent)


def _offsets_text(position: TargetPosition) -> str:
    return json.dumps({str(partition): offset for partition, offset in sorted(position.offsets.items())})


def applied_rows(
    service: str, events: Iterable[AppliedEvent], applied_at: int, token: int
) -> Iterator[tuple[Value, ...]]:
    """The rows of `thl_applied` for events."""
    for event in events:
        yield (
            service,
            event.seqno,
            event.epoch,
            event.event_id,
            event.commit_time,
            applied_at,
            token,
            event.rows,
        )


def left_out_rows(service: str, event: LeftOut, at: int) -> tuple[tuple[Value, ...], list[tuple[Value, ...]]]:
    """The row of `thl_skipped` and the rows of `thl_inconsistent` for a skipped event."""
    names = ", ".join(sorted(map(str, event.tables)))
    reason = f"{BY_HAND}{event.reason}" if event.by_hand else event.reason
    skipped = (service, event.seqno, event.epoch, event.event_id, at, event.by, reason, names)
    because = f"event {event.seqno} was {'' if event.by_hand else 'left out: '}{reason}"
    return skipped, [(service, *name, event.seqno, because) for name in event.tables]


def excluded_row(service: str, name: TableName, entry: Excluded) -> tuple[Value, ...]:
    """The row of `thl_excluded` for an excluded table."""
    return (service, *name, entry.since, entry.at, entry.by, entry.reason, entry.changes)


def loading_row(service: str, name: TableName, entry: Loading) -> tuple[Value, ...]:
    """The row of `thl_loading` for a table that is being loaded."""
    return (service, *name, entry.load, entry.since, entry.at, entry.state, entry.marks, entry.consistent)


LOADING: Final = "schema_name, table_name, load_id, since_seqno, began_at, state, marks, consistent"
"""The columns of `thl_loading` after the service."""


def loading_from(rows: Iterable[Sequence[object]]) -> dict[TableName, Loading]:
    """The tables that are being loaded, in rows of the columns `LOADING`."""
    return {
        TableName(str(schema), str(table)): Loading(
            load=str(load),
            since=Seqno(int(str(since))),
            at=int(str(at)),
            state=LoadContent(str(state)),
            marks=str(marks),
            consistent=bool(consistent),
        )
        for schema, table, load, since, at, state, marks, consistent in rows
    }


def with_loads(
    schema: TargetSchema, position: TargetPosition, loads: Mapping[TableName, Loading]
) -> tuple[TargetSchema, TargetPosition]:
    """The schema with the tables that are being loaded, and the position as it is but for their loads."""
    for name, entry in loads.items():
        schema = schema.with_loading(name, entry)
        position = replace(position, consistent=entry.consistent)
    return schema, position


EXCLUDED: Final = "schema_name, table_name, since_seqno, excluded_at, excluded_by, because, changes"
"""The columns of `thl_excluded` after the service."""


def excluded_from(rows: Iterable[Sequence[object]]) -> dict[TableName, Excluded]:
    """The excluded tables in rows of the columns `EXCLUDED`."""
    return {
        TableName(str(schema), str(table)): Excluded(
            since=Seqno(int(str(since))), at=int(str(at)), by=str(by), reason=str(because), changes=int(str(changes))
        )
        for schema, table, since, at, by, because, changes in rows
    }
