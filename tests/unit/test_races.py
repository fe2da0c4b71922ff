"""A test that passes only when repeated is named and fails the run."""

from __future__ import annotations

import tomllib

import pytest

from tests.races import KNOWN, judge


@pytest.mark.parametrize(
    ("again", "known", "lines", "passed"),
    [
        ({"a", "b"}, set(), ["broken: a", "broken: b"], False),
        ({"a"}, {"b"}, ["broken: a", "a known race: b"], False),
        (set(), {"b"}, ["a race: a", "a known race: b"], False),
        (set(), {"a", "b"}, ["a known race: a", "a known race: b"], True),
        ({"a", "b"}, {"a", "b"}, ["broken: a", "broken: b"], False),
    ],
)
def test_repeated_test_that_passes_fails_the_run_unless_it_is_a_known_race(
    again: set[str], known: set[str], lines: list[str], passed: bool
) -> None:
    assert judge({"a", "b"}, again, known) == (lines, passed)


def test_each_known_race_has_a_reason() -> None:
    known = tomllib.loads(KNOWN.read_text(encoding="utf-8"))
    assert all(isinstance(reason, str) and len(reason) > 20 for reason in known.values())
