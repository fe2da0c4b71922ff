"""Compares a database of two servers by SELECTs of its own: definitions, every value, and MySQL's own checksums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from tests.support.mysql import connect
from tests.support.servers.environment import SqlServer

_TEXTS: Final = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
_HEXADECIMAL: Final = (
    *_TEXTS,
    *("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit", "vector"),
    *("geometry", "point", "linestring", "polygon"),
    *("multipoint", "multilinestring", "multipolygon", "geomcollection"),
)
_SHOWN: Final = 3  # rows that a difference shows

# What a target with the source's definitions has of it. Its tables are InnoDB's, with a row format of their own, and
# with trees where MEMORY has hashes.
_DEFINITIONS: Final = {
    "schemata": "default_character_set_name, default_collation_name FROM information_schema.schemata "
    "WHERE schema_name = '{}'",
    "tables": "table_name, table_collation, table_comment, IF(create_options LIKE '%partitioned%', 'parts', '') "
    "FROM information_schema.tables WHERE table_schema = '{}' AND table_type = 'BASE TABLE'",
    "columns": "c.table_name, ordinal_position, column_name, column_default, is_nullable, column_type, "
    "character_set_name, collation_name, column_key, extra, column_comment, generation_expression, srs_id "
    "FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name) "
    "WHERE c.table_schema = '{}' AND table_type = 'BASE TABLE'",
    "indexes": "table_name, index_name, seq_in_index, non_unique, column_name, sub_part, nullable, "
    "IF(index_type = 'HASH', 'A', collation), IF(index_type = 'HASH', 'BTREE', index_type), "
    "index_comment, is_visible, expression FROM information_schema.statistics WHERE table_schema = '{}'",
    "constraints": "table_name, constraint_name, constraint_type, enforced FROM information_schema.table_constraints "
    "WHERE constraint_schema = '{}'",
    "keys": "table_name, constraint_name, ordinal_position, column_name, referenced_table_name, "
    "referenced_column_name FROM information_schema.key_column_usage WHERE constraint_schema = '{}'",
    "foreign keys": "table_name, constraint_name, unique_constraint_name, update_rule, delete_rule, "
    "referenced_table_name FROM information_schema.referential_constraints WHERE constraint_schema = '{}'",
    "checks": "constraint_name, check_clause FROM information_schema.check_constraints WHERE constraint_schema = '{}'",
    "partitions": "table_name, partition_name, subpartition_name, partition_method, partition_expression, "
    "subpartition_expression, partition_description, partition_comment FROM information_schema.partitions "
    "WHERE table_schema = '{}' AND partition_name IS NOT NULL",
}


def query(server: SqlServer, sql: str) -> list[tuple[Any, ...]]:
    with connect(server, init_command="SET time_zone = '+00:00'") as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def tables_of(server: SqlServer, database: str) -> list[str]:
    where = f"table_schema = '{database}' AND table_type = 'BASE TABLE'"
    names = query(server, f"SELECT table_name FROM information_schema.tables WHERE {where}")
    return sorted(str(name) for (name,) in names)  # each server has an order of its own


def differences(source: SqlServer, target: SqlServer, database: str, *, definitions: bool = True) -> list[str]:
    """What differs between the databases of one name.

    Args:
        source, target: the servers.
        database: the database's name.
        definitions: true if they are of one version, and definitions and checksums have to be the same; false: texts
            are compared by their characters, for the target may store them in another character set.
    """
    tables = tables_of(source, database)
    if tables_of(target, database) != tables:
        return [f"{database}: tables {tables} are {tables_of(target, database)}"]
    found = [*_definitions(source, target, database)] if definitions else []
    for table in tables:
        found += value_differences(source, target, database, table, stored=definitions)
        if definitions and _engine(source, database, table) == "InnoDB":  # others sum up other bytes
            there, here = (query(one, f"CHECKSUM TABLE `{database}`.`{table}`")[0][1] for one in (source, target))
            found += [f"{database}.{table}: checksum {there} is {here}"] * (there is None or there != here)
    return found


def _engine(server: SqlServer, database: str, table: str) -> str:
    where = f"table_schema = '{database}' AND table_name = '{table}'"
    ((found,),) = query(server, f"SELECT engine FROM information_schema.tables WHERE {where}")
    return str(found)


def count(server: SqlServer, database: str) -> Counter[str]:
    """The numbers of tables, rows and values of a database."""
    found: Counter[str] = Counter()
    for table in tables_of(server, database):
        ((rows,),) = query(server, f"SELECT count(*) FROM `{database}`.`{table}`")
        found.update(tables=1, rows=rows, values=rows * len(_columns(server, database, table)))
    return found


def _definitions(source: SqlServer, target: SqlServer, database: str) -> Iterator[str]:
    for what, sql in _DEFINITIONS.items():
        there, here = (Counter(query(one, f"SELECT {sql.format(database)}")) for one in (source, target))
        for one in set(there) - set(here):
            yield f"{database}: {what}: the target lacks {one}"
        for one in set(here) - set(there):
            yield f"{database}: {what}: only the target has {one}"


def value_differences(
    source: SqlServer, target: SqlServer, database: str, table: str, *, stored: bool
) -> Iterator[str]:
    """What rows differ; `stored`: texts are compared by the bytes that are stored, and not by their characters."""
    columns = _columns(source, database, table)
    listed = ", ".join(_text(name, kind, stored=stored) for name, kind in columns)
    there, here = (Counter(query(one, f"SELECT {listed} FROM `{database}`.`{table}`")) for one in (source, target))
    for row in list((there - here).elements())[:_SHOWN]:
        yield f"{database}.{table}: the target lacks {row}"
    for row in list((here - there).elements())[:_SHOWN]:
        yield f"{database}.{table}: only the target has {row}"


def _columns(server: SqlServer, database: str, table: str) -> list[tuple[str, str]]:
    where = f"table_schema = '{database}' AND table_name = '{table}' ORDER BY ordinal_position"
    found = query(server, f"SELECT column_name, data_type FROM information_schema.columns WHERE {where}")
    return [(str(name), str(kind)) for name, kind in found]


def _text(name: str, kind: str, *, stored: bool) -> str:
    """The expression that shows all of a value; of a text the bytes that are stored, or those of UTF-8."""
    column = "`" + name.replace("`", "``") + "`"
    if kind in _TEXTS and not stored:
        return f"HEX(CONVERT({column} USING utf8mb4))"
    if kind in _HEXADECIMAL:
        return f"HEX({column})"
    if kind == "json":
        return f"HEX(CAST({column} AS CHAR))"
    return f"CAST({column} * 1e0 AS CHAR)" if kind in ("float", "double") else f"CAST({column} AS CHAR)"
