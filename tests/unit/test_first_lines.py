"""The first line of a docstring says what the thing is or does, by itself (CONTRIBUTING.md)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUESTIONS = ("How ", "What ", "Whether ", "Which ", "Who ", "Whose ")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def wrong(folder: Path) -> Iterator[str]:
    """The docstrings whose first line goes on in the next, or begins with a question's word: `file: line`."""
    for path in sorted(folder.glob("**/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
            first, *others = (text or "").partition("\n\n")[0].split("\n")
            if others or first.startswith(QUESTIONS):
                yield f"{path.relative_to(folder)}: {first}"


def test_a_first_line_is_whole_and_no_question() -> None:
    assert list(wrong(ROOT / "connector")) == []


@pytest.mark.parametrize(
    "planted",
    [
        '"""What a step\nholds."""',
        '"""A step that\ngoes on."""',
        'class Step:\n    """How tables are loaded."""',
        'def f():\n    """Which of them."""',
        'class Step:\n    async def f(self):\n        """A step that\n        goes on."""',
    ],
)
def test_a_wrong_first_line_is_found(tmp_path: Path, planted: str) -> None:
    (tmp_path / "one.py").write_text(planted)
    (tmp_path / "two.py").write_text('"""A step.\n\nWhat it does\ngoes on."""\n\n\ndef f(): ...\n')
    assert len(list(wrong(tmp_path))) == 1
