"""Rows of which the log has only some columns, changed in place: the table has no unique index but its key.

Many rows of which the log has the same columns are given to a temporary table, and joined with the table; a few are an
UPDATE each.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

from connector.log.compact.net_changes import Images
from connector.targets.mysql.names import names, own, quoted
from connector.targets.mysql.table_statements import SAVEPOINT, TOGETHER, TableStatements
from connector.targets.operations import Value
from connector.targets.values import rows as decoded

MANY: Final = 50  # rows from which on a temporary table pays
_GIVEN: Final = own("thl_given")


def change_in_place(on: TableStatements, images: Images) -> None:
    """Set the columns that the log has of each row.

    Args:
        on: the statements of the table.
        images: partial images that keep their keys.

    Raises:
        TargetDiffers: a row is missing, unless it may have been applied before.
    """
    for some in _by_columns(on, images):
        if len(some) >= MANY:
            _change_many(on, some)
        else:
            _change_few(on, some)


def _by_columns(on: TableStatements, images: Images) -> Iterable[Images]:
    """The images, divided by the columns that the log has of them."""
    width = len(on.columns)
    groups: dict[Value, Images] = {}
    start = 0
    for (bits,), end in zip(
        decoded(images.data, images.ends, width + 1 + len(on.key), [width]), images.ends, strict=True
    ):
        group = groups.get(bits)
        if group is None:
            group = groups[bits] = Images(bytearray(), array("Q"))
        group.data += images.data[start:end]
        group.ends.append(len(group.data))
        start = end
    return groups.values()


def _change_many(on: TableStatements, images: Images) -> None:
    _, absent, _ = next(on.partial_rows(images))
    width = len(on.columns)
    given = [index for index in on.written if index not in absent and index not in on.key] or on.key[:1]
    base = [width + 1 + place for place in range(len(on.key))]
    columns = {f"c{index}": on.columns[index] for index in given}
    keys = {f"k{place}": on.columns[index] for place, index in enumerate(on.key)}
    listed = ", ".join(f"{quoted(column)} AS {name}" for name, column in {**columns, **keys}.items())
    on.session.query(f"DROP TEMPORARY TABLE IF EXISTS {_GIVEN}")
    on.session.query(f"CREATE TEMPORARY TABLE {_GIVEN} AS SELECT {listed} FROM {on.name} WHERE FALSE")
    same = " AND ".join(f"t.{quoted(column)} = s.{name}" for name, column in keys.items())
    changes = [f"t.{quoted(column)} = s.{name}" for name, column in columns.items()]
    changes += [f"t.{name} = t.{name}" for name in (quoted(on.columns[index]) for index in on.kept(absent))]
    update = f"UPDATE {_GIVEN} AS s STRAIGHT_JOIN {on.name} AS t ON {same} SET {', '.join(changes)}"
    head = f"INSERT INTO {_GIVEN} ({names([*columns, *keys])}) VALUES ".encode()
    for text, first, end in on.chunks(images, [*given, *base], of_key=True):
        on.run(head + text)
        count = on.run(update, "updated")
        if count != end - first and not on.again:
            raise _missing(on, images, range(first, end))
        on.session.query(f"DELETE FROM {_GIVEN}")


def _missing(on: TableStatements, images: Images, chunk: range) -> Exception:
    on.session.query(f"ROLLBACK TO SAVEPOINT {SAVEPOINT}")
    bases = [base for _, _, base in on.partial_rows(images)][chunk.start : chunk.stop]
    for base in bases:
        if not on.session.rows(f"SELECT 1 FROM {on.name} WHERE {on.matches(base)} LIMIT 1"):
            return on.missing(base)
    return on.missing(bases[0])


def _change_few(on: TableStatements, images: Images) -> None:
    statements: list[str] = []
    bases: list[tuple[Value, ...]] = []
    for values, absent, base in on.partial_rows(images):
        present = [index for index in on.written if index not in absent and index not in on.key]
        assigned = present or [index for index in on.key if index in on.written]
        pairs = [(quoted(on.columns[index]), on.literal(index, values[index])) for index in assigned]
        pairs += [(name, name) for name in (quoted(on.columns[index]) for index in on.kept(absent))]
        assignments = ", ".join(f"{name} = {value}" for name, value in pairs)
        statements.append(f"UPDATE {on.name} SET {assignments} WHERE {on.matches(base)}")
        bases.append(base)
        if len(statements) == TOGETHER or sum(map(len, statements)) > on.limit:
            _run(on, statements, bases)
    _run(on, statements, bases)


def _run(on: TableStatements, statements: list[str], bases: list[tuple[Value, ...]]) -> None:
    if not statements:
        return
    for count, base in zip(on.run_many(statements, "updated"), bases, strict=True):
        if count != 1 and not on.again:
            raise on.missing(base)
    statements.clear()
    bases.clear()
