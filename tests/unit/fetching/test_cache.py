"""The cache: an entry is whole or absent, and is fetched once."""

from __future__ import annotations

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from connector.fetching.cache import Cache, default_folder


def test_entry_is_installed_once(tmp_path: Path) -> None:
    calls: list[Path] = []

    def install(folder: Path) -> None:
        calls.append(folder)
        (folder / "file").write_text("whole")

    for _ in range(2):
        assert (Cache(tmp_path).ensure("thing-1", install) / "file").read_text() == "whole"
    assert len(calls) == 1


def test_failed_install_leaves_nothing_and_can_be_retried(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        cache.ensure("thing-1", fail)
    assert not cache.path("thing-1").exists()
    assert not any(entry.is_dir() for entry in tmp_path.iterdir())
    place = cache.ensure("thing-1", lambda folder: (folder / "file").touch())
    assert [file.name for file in place.iterdir()] == ["file"]


def test_one_of_two_concurrent_callers_installs(tmp_path: Path) -> None:
    """Threads stand for processes: each opens the lock file itself, and the kernel locks by open file."""
    calls: list[Path] = []

    def install(folder: Path) -> None:
        calls.append(folder)
        (folder / "file").touch()

    with ThreadPoolExecutor(8) as pool:
        places = list(pool.map(lambda _: Cache(tmp_path).ensure("thing-1", install), range(8)))
    assert set(places) == {tmp_path / "thing-1"}
    assert len(calls) == 1


def test_a_daemon_started_while_installing_does_not_keep_the_lock(tmp_path: Path) -> None:
    def open_files_for_children(_: Path) -> None:
        locks = [fd for fd in Path("/proc/self/fd").iterdir() if str(os.path.realpath(fd)).endswith(".lock")]
        assert len(locks) == 1
        assert not os.get_inheritable(int(locks[0].name))

    Cache(tmp_path).ensure("thing-1", open_files_for_children)


def test_the_folder_is_the_one_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.delenv("THL_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_folder() == Path("/home/somebody/.cache/thl")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert default_folder() == Path("/cache/thl")
    monkeypatch.setenv("THL_CACHE", "/mine")
    assert default_folder() == Path("/mine")


def test_what_is_fetched_is_logged_and_what_is_there_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = Cache(tmp_path)
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            cache.ensure("jars-1", lambda folder: (folder / "a.jar").touch())
    (said,) = [record for record in caplog.records if record.name == "connector.fetching"]
    assert (said.getMessage(), said.__dict__["item"]) == ("fetching into the cache", "jars-1")
