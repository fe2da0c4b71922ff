"""Every mutant of the list fits the code, and its tests exist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.mutant import ROOT, Mutant, Verdict, judge, mutants


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.name)
def test_mutant_can_be_made_and_its_tests_exist(mutant: Mutant) -> None:
    _, match = mutant.place(ROOT)
    assert match.group() != mutant.now
    assert mutant.selection(ROOT)


@pytest.mark.parametrize(
    ("now", "verdict"),
    [("return 3", Verdict.KILLED), ("return 2 + 0", Verdict.SURVIVED)],
)
def test_mutant_is_killed_where_its_test_fails_and_taken_out_again(tmp_path: Path, now: str, verdict: Verdict) -> None:
    code = tmp_path / "connector" / "two.py"
    test = tmp_path / "tests" / "test_two.py"
    for path, text in (
        (code, "def two():\n    return 2\n"),
        (test, "from connector.two import two\n\n\ndef test_two():\n    assert two() == 2\n"),
    ):
        path.parent.mkdir()
        path.write_text(text)
    assert judge(Mutant("two", "return 2", now, ("test_two.py",)), tmp_path)[0] is verdict
    assert code.read_text().endswith("return 2\n")
    assert judge(Mutant("gone", "return 4", now, ("test_two.py",)), tmp_path)[0] is Verdict.VOID


def test_mutants_say_whether_their_tests_start_servers() -> None:
    """`--no-servers` leaves out those that do."""
    selections = {mutant.name: set(mutant.selection(ROOT)) for mutant in mutants()}
    files = sorted(set[str]().union(*selections.values()))
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "-m", "servers", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    with_servers = {line.partition("::")[0] for line in collected.stdout.splitlines() if "::" in line}
    assert with_servers, collected.stdout
    wrong = {mutant.name for mutant in mutants() if mutant.servers != bool(selections[mutant.name] & with_servers)}
    assert not wrong
