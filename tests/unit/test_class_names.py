"""One class name names one class of the connector (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMPILED = re.compile(r"^\s*(?:(?:cdef\s+)?class|cpdef\s+enum)\s+(\w+)", re.MULTILINE)


def classes(path: Path) -> Iterator[str]:
    """The classes of a file, except those of a leading underscore, which no other file names."""
    if path.suffix == ".pyx":
        names = COMPILED.findall(path.read_text())
    else:
        names = [node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)]
    yield from (name for name in names if not name.startswith("_"))


def repeated(folder: Path) -> dict[str, list[str]]:
    """The class names of several classes, with their files."""
    found = defaultdict(list)
    for path in sorted([*folder.glob("**/*.py"), *folder.glob("**/*.pyx")]):
        for name in classes(path):
            found[name].append(str(path.relative_to(folder)))
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def test_a_class_name_names_one_class() -> None:
    assert repeated(ROOT / "connector") == {}


@pytest.mark.parametrize("second", ["class Step: ...", "cdef class Step:\n    pass", "def f():\n    class Step: ..."])
def test_a_second_class_of_a_name_is_found(tmp_path: Path, second: str) -> None:
    (tmp_path / "one.py").write_text("class Step: ...\nclass _Own: ...\nclass Another: ...\n")
    (tmp_path / f"two.{'pyx' if second.startswith('cdef') else 'py'}").write_text(f"{second}\nclass _Own: ...\n")
    assert repeated(tmp_path) == {"Step": ["one.py", f"two.{'pyx' if second.startswith('cdef') else 'py'}"]}
