"""Which schemas and tables are for us: the do and ignore patterns of the configuration.

A pattern is `schema.table` or `schema` (all its tables); `*` stands for any characters, `?` for one. It is split at
its first dot: `?` in a schema's part also finds a dot in the name. Ignore wins over do; no do pattern means all.
MySQL's own schemas are never for us.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from connector.config import Filters
from connector.errors import ConfigError

SYSTEM_SCHEMAS = frozenset({"mysql", "sys", "performance_schema", "information_schema"})


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern, compiled.

    Args:
        schema: finds schemas.
        table: finds tables; None where the pattern names a whole schema.
    """

    schema: re.Pattern[str]
    table: re.Pattern[str] | None

    def finds(self, schema: str, table: str) -> bool:
        """Whether the table is meant."""
        return self.finds_schema(schema) and (self.table is None or self.table.fullmatch(table) is not None)

    def finds_schema(self, schema: str) -> bool:
        """Whether some table of the schema can be meant."""
        return self.schema.fullmatch(schema) is not None

    @property
    def whole(self) -> bool:
        """Whether every table of the schemas it finds is meant."""
        return self.table is None or self.table.pattern == ".*"


class Filter:
    """Decides which tables are captured.

    Args:
        filters: the configured patterns.
        lower_case_table_names: the server's: 0 keeps names apart by case, 1 and 2 do not.

    Raises:
        ConfigError: a pattern is empty or has an empty half.
    """

    def __init__(self, filters: Filters, lower_case_table_names: int = 0) -> None:
        self._fold: Callable[[str], str] = str.lower if lower_case_table_names else str
        self._do = tuple(self._compile(pattern, "do") for pattern in filters.do)
        self._ignore = tuple(self._compile(pattern, "ignore") for pattern in filters.ignore)

    def wants(self, schema: str, table: str) -> bool:
        """Whether changes of this table are published."""
        schema, table = self._fold(schema), self._fold(table)
        if schema in SYSTEM_SCHEMAS or any(pattern.finds(schema, table) for pattern in self._ignore):
            return False
        return not self._do or any(pattern.finds(schema, table) for pattern in self._do)

    def wants_schema(self, schema: str) -> bool:
        """Whether some table of this schema may be published: what CREATE and DROP DATABASE ask."""
        schema = self._fold(schema)
        if schema in SYSTEM_SCHEMAS or any(p.whole and p.finds_schema(schema) for p in self._ignore):
            return False
        return not self._do or any(pattern.finds_schema(schema) for pattern in self._do)

    def _compile(self, pattern: str, field: str) -> Pattern:
        schema, dot, table = self._fold(pattern.strip()).partition(".")
        if not schema or (dot and not table):
            raise ConfigError(
                f"source.filters.{field}: the pattern {pattern!r} is not `schema` or `schema.table`",
                hint="write `shop`, `shop.orders` or `shop.*_log`",
            )
        return Pattern(_regex(schema), _regex(table) if dot else None)


def _regex(glob: str) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(char) or re.escape(char) for char in glob), re.DOTALL)
