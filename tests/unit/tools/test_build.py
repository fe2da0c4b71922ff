"""Groups of wheels to fetch, and cache keys of compiled modules."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import setup
from connector.fetching import fetch
from tests.support.servers import fetch as servers
from tests.tools import pins, prepare, wheels

ROOT = Path(__file__).parents[3]


def test_hashes_are_grouped_as_the_installed_packages_need_each_other() -> None:
    lines = {line.split()[0]: line for line in wheels.HASHES.read_text().splitlines() if line and line[0] != "#"}
    assert pins.grouped(lines) == wheels.HASHES.read_text()


def test_the_demo_fetches_neither_tools_of_developers_nor_servers_of_tests() -> None:
    demo, tests = ({step.name for step in prepare.plan(goal, Path("venv"))} for goal in ("demo", "fetch"))
    assert tests - demo == {
        "dev wheels",
        "dev packages",
        "postgres",
        "mariadb",
        "mariadb-binlog",
        "kafka-tools",
        "mysql56",
        "registry",
        "class archive",
    }
    assert demo < tests


@pytest.mark.parametrize("goal", prepare.GOALS)
def test_every_needed_step_is_in_the_plan(goal: str) -> None:
    steps = prepare.plan(goal, Path("venv"))
    assert {need for step in steps for need in step.needs} <= {step.name for step in steps}


@pytest.mark.parametrize("goal", ["demo", "fetch"])
def test_every_server_that_is_fetched_is_known_to_its_module(goal: str) -> None:
    known = {"connector.fetching.fetch": fetch.THINGS, "tests.support.servers.fetch": servers.FETCHABLE}
    fetched = [step.command[2:] for step in prepare.plan(goal, Path("venv")) if step.command[2] in known]
    assert len(fetched) == {"demo": 4, "fetch": 11}[goal]
    assert [name for module, name in fetched if name not in known[module]] == []


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two modules, one of which includes definitions of the other."""
    folder = tmp_path / "connector"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "header.pxd").write_text("cdef int parse(int value)\n")
    (folder / "header.pyx").write_text("cdef int parse(int value):\n    return value\n")
    (folder / "reader.pyx").write_text("from connector.header cimport parse\ndef read():\n    return parse(1)\n")
    monkeypatch.chdir(tmp_path)
    yield folder


def keys() -> dict[str, str]:
    cache = setup.Cache(Path("cache"))
    return {one.name.partition(".")[2]: cache.key(one) for one in setup.extensions()}


def test_a_module_is_compiled_again_when_a_source_or_an_included_one_changes(sources: Path) -> None:
    first = keys()
    assert keys() == first
    (sources / "header.pyx").write_text("cdef int parse(int value):\n    return value + 1\n")
    second = keys()
    assert second["header"] != first["header"]
    assert second["reader"] == first["reader"]
    (sources / "header.pxd").write_text("cdef long parse(int value)\n")
    assert keys()["reader"] != second["reader"]


def test_another_compiler_or_header_makes_another_key(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = keys()
    monkeypatch.setenv("CFLAGS", "-O3")
    assert not set(keys().values()) & set(first.values())
    monkeypatch.delenv("CFLAGS")
    (sources / "crc32.h").touch()
    assert not set(keys().values()) & set(first.values())


def test_a_kept_module_replaces_another_one(tmp_path: Path) -> None:
    cache, place = setup.Cache(tmp_path / "kept"), tmp_path / "made.so"
    place.write_bytes(b"one")
    cache.keep("a.so", place)
    place.write_bytes(b"two")
    assert cache.take("a.so", place)
    assert place.read_bytes() == b"one"
    assert os.access(place, os.X_OK)
    assert not cache.take("b.so", place)
    shutil.rmtree(tmp_path / "kept")
    assert not cache.take("a.so", place)
