"""The marks of a table: a table of the target with the keys that were written since the load of another one began."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of a table.

    Args:
        name: their name; "": there are none, and no row counts as marked (a repair).
        key: the index of each of their columns in the table's columns.
        unique_keys: likewise the columns of each unique index of the target's table, without its primary key.
        in_place: the table has no other unique index, so rows are replaced by upserts; otherwise they are deleted and
            inserted again, because rows of one commit may swap unique values.
    """

    name: str
    key: tuple[int, ...]
    unique_keys: tuple[tuple[int, ...], ...] = ()
    in_place: bool = False
