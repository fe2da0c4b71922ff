"""Formats changes of rows as SQL: INSERT, UPDATE, DELETE and, of rows that a load read, REPLACE statements.

A row is found by its primary key; without one by every value of its old image, and LIMIT 1, because equal rows are
interchangeable. Where the source logs fewer columns (`binlog_row_image`), they are those of a unique key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from connector.errors import ConnectorError, LogDamaged, Unsupported
from connector.inspect.formats.sql_literals import Column, condition, literal, quoted
from connector.inspect.formats.tungsten import present

Excluded = Callable[[str, str, str], bool]


def row_statements(change: Mapping[str, Any], excluded: Excluded, *, hexadecimal: bool = False) -> Iterator[str]:
    """The statements of a change, without semicolons.

    Args:
        change: a RowChange of schemas/fragment.avsc.
        excluded: true for a schema, table and column that are not to be set: a generated column.
        hexadecimal: text in hexadecimal.

    Raises:
        ValueNotRepresentable: a value has no literal.
        Unsupported: a row is identified by nothing.
        LogDamaged: an image is missing.
    """
    columns: Sequence[Column] = change["columns"]
    before, after = (present(change[f"{image}_present"], len(columns)) for image in ("before", "after"))
    table = f"{quoted(change['schema'])}.{quoted(change['table'])}"
    not_set = {
        index for index, column in enumerate(columns) if excluded(change["schema"], change["table"], column["name"])
    }

    def literals(row: Mapping[str, Any]) -> list[tuple[int, str]]:
        found = zip(after, row["after"], strict=True)
        return [
            (index, literal(columns[index], value, hexadecimal=hexadecimal))
            for index, value in found
            if index not in not_set
        ]

    def where(row: Mapping[str, Any]) -> str:
        values = dict(zip(before, row["before"], strict=True))
        key = change["key_columns"]
        keyed = bool(key) and values.keys() >= set(key)
        chosen = key if keyed else [index for index in before if index not in not_set]
        found = " AND ".join(
            condition(columns[index], values[index], of_key=keyed, hexadecimal=hexadecimal) for index in chosen
        )
        if not found:
            raise Unsupported("no value of a row's old image identifies it", hint="exclude fewer columns")
        return f"WHERE {found}{'' if keyed else ' LIMIT 1'}"

    try:
        match change["action"]:
            case "insert" | "read":
                verb = "INSERT" if change["action"] == "insert" else "REPLACE"
                names = ", ".join(quoted(columns[index]["name"]) for index in after if index not in not_set)
                values = ",\n".join(f"({', '.join(one for _, one in literals(row))})" for row in change["rows"])
                if values:
                    yield f"{verb} INTO {table} ({names}) VALUES\n{values}"
            case "update":
                for row in change["rows"]:
                    sets = [f"{quoted(columns[index]['name'])} = {shown}" for index, shown in literals(row)]
                    if sets:
                        yield f"UPDATE {table} SET {', '.join(sets)} {where(row)}"
            case _:
                for row in change["rows"]:
                    yield f"DELETE FROM {table} {where(row)}"
    except ConnectorError as error:
        error.where.setdefault("table", f"{change['schema']}.{change['table']}")
        raise
    except TypeError as error:
        raise LogDamaged("a row lacks an image", table=f"{change['schema']}.{change['table']}") from error
