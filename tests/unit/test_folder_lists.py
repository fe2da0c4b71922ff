"""The `__init__` of every folder lists each of its modules on one line, and nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

CONNECTOR = Path(__file__).parents[2] / "connector"
SOURCES = {".py", ".pyx", ".pxd"}
FOLDERS = sorted(path.parent for path in CONNECTOR.rglob("__init__.py"))


def modules_of(folder: Path) -> list[str]:
    """Modules, and subfolders with a `/`."""
    files = {path.stem for path in folder.iterdir() if path.suffix in SOURCES and not path.stem.startswith("__")}
    return sorted([*files, *(f"{path.parent.name}/" for path in folder.glob("*/__init__.py"))])


def listed_in(folder: Path) -> list[str]:
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    return sorted(re.findall(r"^- `(\w+/?)`: \S", docstring, re.MULTILINE))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: str(folder.relative_to(CONNECTOR.parent)))
def test_the_list_of_a_folder_is_complete_and_names_nothing_else(folder: Path) -> None:
    assert listed_in(folder) == modules_of(folder)
