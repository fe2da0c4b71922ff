"""What is appended to a file of the relay, directly or not, is there in order, or there is an error before the sync."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from threading import Event, Timer

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connector.relay import appending
from connector.relay.appending import BLOCK, MOST_WAITING, AppendedFile, Appending, DirectWrites, aligned
from connector.relay.spool import SpooledRecords

CONTENT = os.urandom(5 * BLOCK + 77)
LENGTHS = st.one_of(st.integers(0, 3 * BLOCK), st.sampled_from([BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK]))
STEPS = st.lists(st.tuples(st.sampled_from(["append", "copy", "truncate"]), st.integers(0, 2 * BLOCK), LENGTHS))


@pytest.fixture(autouse=True)
def least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(appending, "LEAST", 1)


def stored(folder: Path) -> SpooledRecords:
    path = folder / "spool"
    path.write_bytes(CONTENT)
    return SpooledRecords(os.fsencode(path), 0, len(CONTENT)).opened({})


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, again=st.booleans())
def test_a_file_has_what_was_appended(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]], again: bool
) -> None:
    folder = tmp_path_factory.mktemp("appended")
    source, buffer, expected = stored(folder), aligned(), bytearray()
    file = AppendedFile(folder / "file", DirectWrites())
    for kind, begin, length in steps:
        end = min(begin + length, len(CONTENT))
        match kind:
            case "append":
                file.append(memoryview(CONTENT)[begin:end])
                expected += CONTENT[begin:end]
            case "copy":
                file.copy(source.part(begin, end), buffer)
                expected += CONTENT[begin:end]
            case _:
                del expected[min(length, len(expected)) :]
                file.truncate(len(expected))
        if again:
            file.close()
            file = AppendedFile(folder / "file", DirectWrites())
        assert (folder / "file").read_bytes() == expected
    file.close()


@pytest.mark.parametrize("refused", ["open", "pwrite"])
def test_a_file_system_without_direct_writes_gets_others_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, refused: str
) -> None:
    opened = os.open

    def without(path: Path, flags: int, *words: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return opened(path, flags, *words)

    def failing(*_: object) -> int:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, refused, without if refused == "open" else failing)
    caplog.set_level(logging.INFO, "connector")
    writes = DirectWrites()
    for name in ("one", "two"):
        file = AppendedFile(tmp_path / name, writes)
        file.append(memoryview(b"abc"))
        file.copy(stored(tmp_path), aligned())
        file.close()
        assert (tmp_path / name).read_bytes() == b"abc" + CONTENT
    assert [one.message for one in caplog.records] == [
        "the relay's file system has no direct writes: they cost more CPU"
    ]


def test_large_records_are_written_directly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    pwrite = os.pwrite
    monkeypatch.setattr(
        os, "pwrite", lambda number, data, at: (written.append((at, len(data))), pwrite(number, data, at))[1]
    )
    file = AppendedFile(tmp_path / "file", DirectWrites())
    file.append(memoryview(b"abc"))
    file.copy(stored(tmp_path), aligned())
    assert written == [(BLOCK, 4 * BLOCK)]
    monkeypatch.setattr(appending, "LEAST", len(CONTENT) + 1)
    file.copy(stored(tmp_path), aligned())
    assert len(written) == 1
    file.close()


def test_a_full_disk_is_an_error_of_a_direct_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    file = AppendedFile(tmp_path / "file", DirectWrites())
    with pytest.raises(OSError, match="No space left"):
        file.copy(stored(tmp_path), aligned())
    file.close()


def test_works_are_done_in_order_and_an_error_is_raised_once() -> None:
    done: list[int] = []
    works = Appending()

    def fails() -> None:
        raise OSError(errno.EIO, "Input/output error")

    works.then(lambda: done.append(1))
    works.then(fails)
    works.then(lambda: done.append(2))
    with pytest.raises(OSError, match="Input/output"):
        works.wait()
    works.wait()
    works.close()
    assert done == [1, 2]


def test_a_work_waits_while_too_many_do() -> None:
    go, works = Event(), Appending()
    done: list[int] = []
    works.then(lambda: (go.wait(60), done.append(0))[1])
    for _ in range(MOST_WAITING - 1):
        works.then(lambda: None)
    later = Timer(0.1, go.set)
    later.start()
    works.then(lambda: done.append(1))  # returns when the first one is done
    assert done[:1] == [0]
    later.join()
    works.close()
    assert done == [0, 1]
