"""What the problems of a status say, without their remedies."""

from __future__ import annotations

from collections.abc import Iterable

from connector.status.report import Problem


def texts(problems: Iterable[Problem]) -> list[str]:
    """The problems' texts."""
    return [problem.text for problem in problems]
