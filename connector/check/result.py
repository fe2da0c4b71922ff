"""The result of a check: its state, what was found, and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from connector.errors import ConnectorError, escaped

SOURCE: Final = "source"
GRANTS: Final = "grants"
KAFKA: Final = "kafka"
TARGET: Final = "target"
RELAY: Final = "relay"
RECORDS: Final = "records"
JAVA: Final = "java"
SUBJECTS: Final = (SOURCE, GRANTS, KAFKA, TARGET, RELAY, RECORDS, JAVA)
_WIDTH: Final = max(map(len, SUBJECTS))


class CheckState(StrEnum):
    """The state of a check, from good to bad."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """One result.

    Args:
        name: the checked subject, of `SUBJECTS`.
        state: the state.
        found: the finding, as a sentence without a full stop.
        remedy: the statement, command or option that helps; "" if there is nothing to do.
        exit_code: exit code of the error; 0 if there is none.
    """

    name: str
    state: CheckState
    found: str
    remedy: str = ""
    exit_code: int = 0


def ok(name: str, found: str) -> Check:
    """Return the result of a check without a problem."""
    return Check(name, CheckState.OK, found)


def warning(name: str, found: str, remedy: str = "") -> Check:
    """Return the result of a check that found a weakness with which everything runs."""
    return Check(name, CheckState.WARNING, found, remedy)


def failed(name: str, error: ConnectorError) -> Check:
    """Return the result of a check that failed with an error."""
    return Check(name, CheckState.FAILED, error.located, error.hint, error.exit_code)


def in_order(checks: Iterable[Check]) -> list[Check]:
    """Sort checks by their subjects."""
    return sorted(checks, key=lambda check: SUBJECTS.index(check.name))


def exit_code(checks: Sequence[Check]) -> int:
    """Return the exit code of the first check that failed; 0 if none did."""
    return next((check.exit_code for check in checks if check.state is CheckState.FAILED), 0)


def as_text(checks: Sequence[Check]) -> str:
    """Return one line for each check, and its remedy below."""
    return "\n".join(map(as_line, checks))


def as_objects(checks: Sequence[Check]) -> list[dict[str, str]]:
    """Return the checks for JSON."""
    return [{"check": one.name, "state": one.state, "found": one.found, "remedy": one.remedy} for one in checks]


def as_line(check: Check) -> str:
    """Return the line of a check, and its remedy below."""
    below = "\n" + " " * (len(CheckState.WARNING) + _WIDTH + 4)
    # A server's answer is part of what was found, and of the remedy.
    text = escaped(check.found if not check.remedy else f"{check.found}\n-> {check.remedy}", "\n")
    return f"{check.state.upper():{len(CheckState.WARNING)}}  {check.name:{_WIDTH}}  {text}".replace("\n", below)
