"""`make` runs its steps side by side; a step that fails ends the others and shows its log."""

from __future__ import annotations

import io
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.tools.progress import Progress
from tests.tools.steps import Step, StepFailed, run


def python(code: str, *words: Path) -> list[str]:
    return [sys.executable, "-c", code, *map(str, words)]


def meets(own: Path, other: Path) -> list[str]:
    """A command that ends only when another one runs at the same time."""
    return python(
        "import sys, time\nfrom pathlib import Path\nPath(sys.argv[1]).touch()\n"
        "while not Path(sys.argv[2]).exists(): time.sleep(0.01)",
        own,
        other,
    )


def test_steps_without_needs_run_side_by_side(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    run([Step("one", meets(one, two)), Step("two", meets(two, one))], tmp_path / "state", Progress(io.StringIO()))
    assert one.exists()
    assert two.exists()


def test_a_step_starts_after_those_it_needs(tmp_path: Path) -> None:
    made = tmp_path / "made"
    steps = [
        Step("reader", python("import sys; open(sys.argv[1]).read()", made), needs=["writer"]),
        Step("writer", python("import sys, time; time.sleep(0.3); open(sys.argv[1], 'w')", made)),
    ]
    run(steps, tmp_path / "state", Progress(io.StringIO()))


def test_a_failed_step_ends_the_others_and_shows_the_end_of_its_log(tmp_path: Path) -> None:
    steps = [
        Step("sleeper", python("import time; time.sleep(600)")),
        Step("a compiler", python("print('line 1'); raise SystemExit(3)")),
        Step("later", python("import sys; open(sys.argv[1], 'w')", tmp_path / "later"), needs=["a compiler"]),
    ]
    with pytest.raises(StepFailed) as failed:
        run(steps, tmp_path / "state", Progress(io.StringIO()))
    assert (failed.value.step, failed.value.code) == ("a compiler", 3)
    assert failed.value.log.read_text() == "line 1\n"
    assert "line 1" in str(failed.value)
    assert str(failed.value.log) in str(failed.value)
    assert not (tmp_path / "later").exists()


def test_an_optional_step_may_fail_with_its_reason_shown(tmp_path: Path) -> None:
    out = io.StringIO()
    command = python("print('no npm on this machine'); raise SystemExit(10)")
    run([Step("mysql56", command, optional=True)], tmp_path / "state", Progress(out))
    assert out.getvalue() == "mysql56 left out: no npm on this machine\n"


def test_a_step_runs_again_only_with_another_key_or_after_a_failure(tmp_path: Path) -> None:
    def times(key: str, code: str = "") -> int:
        command = python(f"import sys; open(sys.argv[1], 'a').write('x'); {code}", tmp_path / "runs")
        with suppress(StepFailed):
            run([Step("install", command, key=key)], tmp_path / "state", Progress(io.StringIO()))
        return len((tmp_path / "runs").read_text())

    assert [times("a"), times("a"), times("b", "raise SystemExit(1)"), times("b"), times("b")] == [1, 1, 2, 3, 3]


class Terminal(io.StringIO):
    """Makes a file once it shows a text."""

    def __init__(self, awaited: str, file: Path) -> None:
        super().__init__()
        self._awaited, self._file = awaited, file

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._awaited in text:
            self._file.touch()
        return super().write(text)


def test_a_terminal_shows_one_line_with_what_is_waited_for_and_its_count(tmp_path: Path) -> None:
    out = Terminal("waiting for compiled modules 3/42", tmp_path / "shown")
    wait = "while not Path(sys.argv[1]).exists(): time.sleep(0.01)"
    counting = "import sys, time\nfrom pathlib import Path\nprint('[3/42] connector.log', flush=True)\n"
    command = python(counting + wait, tmp_path / "shown")
    run([Step("compiled modules", command)], tmp_path / "state", Progress(out))
    assert "\n" not in out.getvalue()
