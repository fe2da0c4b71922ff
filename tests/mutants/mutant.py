"""One defect, its place in a copy of the project, and the outcome of its tests there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
LIST: Final = Path(__file__).with_name("mutants.toml")
SECONDS: Final = 900  # for the tests of one mutant; a mutant that makes a test hang is noticed, too
ALL_SECONDS: Final = 3600  # for the tests of all mutants, on a busy machine
_SUFFIXES: Final = (".py", ".pyx", ".pxd")
_LEFT_OUT: Final = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", "bench-results", ".*_cache")
_TESTS_FAILED: Final = 1  # pytest's exit code; all others but 0 say that it could not run them


class Verdict(Enum):
    """The outcome of one mutant."""

    KILLED = "killed"
    SURVIVED = "survived"
    VOID = "void"  # the pattern is not found once, the copy does not build, or the tests cannot run


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of the code that a test has to detect.

    Args:
        name: name of the defect, as words-with-dashes.
        was, now: a piece of the code, and what stands in its place: see mutants.toml.
        tests: names of test files.
        servers: whether these tests start servers.
    """

    name: str
    was: str
    now: str
    tests: tuple[str, ...]
    servers: bool = False

    def place(self, root: Path) -> tuple[Path, re.Match[str]]:
        """The file of a checkout that has the pattern, and its offset.

        Raises:
            LookupError: it is not there, or more than once.
        """
        pattern = re.compile(r"\s+".join(re.escape(word) for word in self.was.split()))
        found = [
            (path, match)
            for path in sorted((root / "connector").rglob("*"))
            if path.suffix in _SUFFIXES
            for match in pattern.finditer(path.read_text(encoding="utf-8"))
        ]
        if len(found) != 1:
            raise LookupError(f"{self.name}: the pattern is found {len(found)} times: {self.was}")
        return found[0]

    def selection(self, root: Path) -> list[str]:
        """The tests as pytest arguments.

        Raises:
            LookupError: there is no such file, or there are several.
        """
        chosen = []
        for test in self.tests:
            found = sorted((root / "tests").rglob(test))
            if len(found) != 1:
                raise LookupError(f"{self.name}: {len(found)} files are called {test}")
            chosen.append(str(found[0].relative_to(root)))
        return chosen


def mutants() -> tuple[Mutant, ...]:
    """The mutants of mutants.toml."""
    found = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]
    return tuple(Mutant(**{**each, "tests": tuple(each["tests"])}) for each in found)


def copy_of(folder: Path) -> Path:
    """Copy the project with compiled modules and file times, so that nothing is compiled again."""
    return Path(shutil.copytree(ROOT, folder, ignore=_LEFT_OUT, symlinks=True))


def judge(mutant: Mutant, copy: Path) -> tuple[Verdict, str]:
    """Put a mutant into a copy, run its tests there, and take it out again.

    Args:
        mutant: the fault.
        copy: of the project, as it is without the fault, compiled modules included.

    Returns:
        The verdict, and the last lines that pytest or the compiler has printed.
    """
    try:
        path, match = mutant.place(copy)
        tests = mutant.selection(copy)
    except LookupError as error:
        return Verdict.VOID, str(error)
    text = path.read_text(encoding="utf-8")
    try:
        path.write_text(text[: match.start()] + mutant.now + text[match.end() :], encoding="utf-8")
        return _verdict(path, tests, copy)
    finally:
        path.write_text(text, encoding="utf-8")
        if path.suffix != ".py":
            _build(copy)


def unmutated(mutants: Iterable[Mutant], copy: Path) -> subprocess.CompletedProcess[str]:
    """Run the tests of all given mutants on the unchanged code: a test that fails there detects nothing."""
    return _pytest(sorted({test for mutant in mutants for test in mutant.selection(copy)}), copy, ALL_SECONDS)


def _verdict(path: Path, tests: list[str], copy: Path) -> tuple[Verdict, str]:
    if path.suffix != ".py":
        built = _build(copy)
        if built.returncode:
            return Verdict.VOID, _end_of(built)
    try:
        ran = _pytest(tests, copy)
    except subprocess.TimeoutExpired:
        return Verdict.KILLED, f"the tests had not ended after {SECONDS} s"
    if ran.returncode == 0:
        return Verdict.SURVIVED, _end_of(ran)
    # A compiled module that touches memory it does not own may end the interpreter: that is noticed, too.
    killed = ran.returncode == _TESTS_FAILED or ran.returncode < 0
    return Verdict.KILLED if killed else Verdict.VOID, _end_of(ran)


def _build(copy: Path) -> subprocess.CompletedProcess[str]:
    return _run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], copy)


def _pytest(tests: list[str], copy: Path, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
    """Run those that `make test` runs: what only a long test detects is detected too late."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not long", "-p", "no:cacheprovider", *tests]
    return _run(command, copy, seconds)


def _run(command: list[str], copy: Path, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=seconds, check=False
    )


def _end_of(ran: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in (ran.stdout + ran.stderr).splitlines() if line.strip()]
    return "\n".join(lines[-3:])
