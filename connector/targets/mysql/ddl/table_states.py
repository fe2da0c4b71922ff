"""The states of a statement's tables before and after it, by which one tells whether it was executed."""

from __future__ import annotations

import json

from connector.log.transaction.layout import TableName
from connector.targets.mysql.ddl.operations import DdlStep, Effect

TableState = list[str] | None
"""The identifier of a table, and its definition; None: there is no such table."""


def state_key(name: TableName) -> str:
    """The name of a table in the states, which are stored as JSON."""
    return json.dumps(list(name), ensure_ascii=False)


def executed_by(step: DdlStep, before: dict[str, TableState], now: dict[str, TableState]) -> bool | None:
    """Return whether a statement was executed, by the states of the tables; None: they do not tell."""
    if step.effect is Effect.REPEATABLE:
        return False
    if step.effect is Effect.RENAME:
        return _renamed(step, before, now)
    if step.effect is Effect.PERMUTE:
        return True if _definitions(before) != _definitions(now) else None
    if not changed(step, before, now):
        return False
    (first, *_), there = step.tables, [state is not None for state in now.values()]
    match step.effect:
        case Effect.CREATE:
            return True if before[state_key(first)] is None and all(there) else None
        case Effect.DROP:
            return True if not any(there) else None
        case Effect.MOVE:
            return True if now[state_key(first)] is None and any(there) else None
        case _:
            return True if all(there) else None


def changed(step: DdlStep, before: dict[str, TableState], now: dict[str, TableState]) -> bool:
    """True if tables differ, in what tells whether a statement was executed.

    An ALTER that leaves the definition may be executed again; that a table has another number may come from a copy of
    the database, in which the statement was not executed.
    """
    if step.effect is Effect.REPEATABLE:
        return False
    if step.effect is Effect.ALTER:
        return _definitions(before) != _definitions(now)
    return before != now


def _definitions(states: dict[str, TableState]) -> dict[str, str | None]:
    return {name: None if state is None else state[1] for name, state in states.items()}


def _renamed(step: DdlStep, before: dict[str, TableState], now: dict[str, TableState]) -> bool | None:
    """Return whether a RENAME was executed, as `executed_by` does, by the tables' identifiers.

    Definitions do not tell: the names of constraints follow their table's.
    """
    was, there = ({name: state and state[0] for name, state in states.items()} for states in (before, now))
    after = dict(was)
    names = [state_key(name) for name in step.tables]
    for old, new in zip(names[::2], names[1::2], strict=True):
        after[new], after[old] = after[old], None
    if after == was:
        return None
    return True if there == after else False if there == was else None


def shown(states: dict[str, TableState]) -> str:
    """The states for an error."""
    return "; ".join(
        f"{'.'.join(json.loads(name))}: {'none' if state is None else ' '.join(state)}"
        for name, state in states.items()
    )
