"""The runbooks quote messages as the code has them, and name tests that there are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = (ROOT / "docs" / "runbooks.md").read_text(encoding="utf-8")
LEAST: Final = 12  # characters of a piece of a message that say which one it is


def texts() -> Iterator[str]:
    """The constant parts of the code's texts, those of one text on one line, with a gap for each expression in it."""
    for file in (ROOT / "connector").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.Constant(value=str(text)):
                    yield text
                case ast.JoinedStr(values=values):
                    yield "".join(str(one.value) if isinstance(one, ast.Constant) else "\0" for one in values)


TEXTS: Final = "\n".join(sorted({text for text in texts() if len(text) >= LEAST}))


def quoted() -> list[str]:
    """The messages of the page's blocks."""
    blocks = re.findall(r"^```\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [line.removeprefix("thl: ") for block in blocks for line in block.splitlines()]


def of_the_code(message: str) -> bool:
    """True if each piece of a message (`…` stands for anything) is in a text of the code, or is made of two of them."""
    return all(
        piece in TEXTS
        or any(piece[:at] in TEXTS and piece[at:] in TEXTS for at in range(LEAST, len(piece) - LEAST + 1))
        for piece in (piece.strip(" ;") for piece in message.split("…"))
    )


@pytest.mark.parametrize("message", quoted())
def test_each_message_is_one_of_the_code(message: str) -> None:
    assert max(map(len, message.split("…"))) >= LEAST
    assert of_the_code(message)


@pytest.mark.parametrize(
    "message",
    ["the relay is of another planet", "the relay is of another target, or of none", "The target follows a comet"],
)
def test_a_message_that_the_code_does_not_have_is_found(message: str) -> None:
    assert not of_the_code(message)


def test_each_situation_says_what_was_walked() -> None:
    chapters = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    assert [text.partition("\n")[0] for text in chapters if "Tested: " not in text] == ["Fill a target again"]
