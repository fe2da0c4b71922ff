"""All DDL statements of the tests: in their texts, in their SQL files, and generated ones."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.definitions import Statements

ROOT = Path(__file__).parents[1]
RANDOM = 400
_VERBS = (
    *("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "SET STATEMENT", "SET PASSWORD", "GRANT", "REVOKE", "ANALYZE"),
    *("OPTIMIZE", "REPAIR", "FLUSH"),
)
_STATEMENT = re.compile(rf"(?:\s|/\*(?!!).*?\*/|--[^\n]*\n|#[^\n]*\n|/\*!\d*)*(?:{'|'.join(_VERBS)})\b", re.DOTALL)
_DEFINITION = re.compile(r"[a-z]\w* (?:[A-Z]+\d?|[a-z]+)\b.*")  # `n INT NOT NULL`: of the tables of forms
_FORMS = (
    "contract/target_ddl.py",
    "contract/target_values.py",
    "unit/targets/test_ddl.py",
    "unit/targets/test_types.py",
)


@cache
def statements() -> tuple[str, ...]:
    """Each statement once."""
    found = dict.fromkeys(one for text in _texts() for one in _within(text))
    for form in _FORMS:
        for text in _strings(ROOT / form):
            if len(text) < 200 and _DEFINITION.fullmatch(text):
                found |= dict.fromkeys((f"ALTER TABLE t ADD COLUMN {text}", f"CREATE TABLE t (id INT KEY, {text})"))
    made = Statements(13)
    return tuple(found | dict.fromkeys(made.one() for _ in range(RANDOM)))


def _texts() -> Iterator[str]:
    for path in sorted(ROOT.rglob("*.py")):
        yield from _strings(path)
    for path in sorted(ROOT.rglob("*.sql")):
        yield from re.split(r";\s*\n", path.read_text())


def _strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else "a" for one in node.values)


def _within(text: str) -> Iterator[str]:
    """The statements of a text; in a template the names of its fields stand for their values."""
    text = re.sub(r"\{(\w+)\}", r"\1", text)
    for one in dict.fromkeys((text, *text.split(";"))):
        if len(one) < 10_000 and _STATEMENT.match(one):
            yield one.strip()
