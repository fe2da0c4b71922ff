"""Repeats failed tests alone: one that then passes is a race, in the test or in the product.

A race fails `make test` all the same, unless tests/races.toml has it with the reason why it is not mended yet. The list
is for days, not for months; it is empty in what is released.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
FAILED: Final = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
KNOWN: Final = Path(__file__).with_name("races.toml")


def judge(first: set[str], again: set[str], known: set[str]) -> tuple[list[str], bool]:
    """The report about failed tests, and True if all of them are known races.

    Args:
        first: those that failed among others.
        again: those of them that failed alone, too.
        known: races that may be passed over.
    """
    lines = [
        f"{'broken' if test in again else 'a known race' if test in known else 'a race'}: {test}"
        for test in sorted(first | again)
    ]
    return lines, not again and first <= known


def main() -> int:
    first = _failed()
    known = set(tomllib.loads(KNOWN.read_text(encoding="utf-8")))
    if not first:
        print("nothing is known to have failed: the run itself did not come to its end")
        return 1
    print("what failed, once more and alone:", flush=True)
    code = pytest.main(["--last-failed", "--last-failed-no-failures=none", *sys.argv[1:]])
    # A run that did not come to its end, as with a module that cannot be imported, has shown no race.
    again = set() if code == pytest.ExitCode.OK else _failed() if code == pytest.ExitCode.TESTS_FAILED else first
    lines, passed = judge(first, again, known)
    print(*lines, sep="\n")
    return int(code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or not passed)


def _failed() -> set[str]:
    return set(json.loads(FAILED.read_text(encoding="utf-8"))) if FAILED.exists() else set()


if __name__ == "__main__":
    sys.exit(main())
