"""A private folder cannot be read, written or replaced by another user, also one who created it first."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from connector import private_files as private
from connector.errors import ConfigError
from connector.spark import checkpoint
from tests.support.clock import PATIENCE

NOBODY = 65534
OPTION = "apply.checkpoint_dir"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user, too")


def as_user(uid: int, act: Callable[[], str]) -> str:
    """Run a function as another user in a child process; return its text, or its error."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            said = act()
        except BaseException as error:  # noqa: BLE001 (reported to the test)
            said = f"{type(error).__name__}: {error}"
        os.write(into, said.encode())
        os._exit(0)
    os.close(into)
    with os.fdopen(out) as reading:
        said = reading.read()
    os.waitpid(child, 0)
    return said


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder like /tmp: everyone may write, only the owner may remove an entry."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def refusal(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        private.new_folder("x-", folder, OPTION)
    return str(caught.value)


def test_new_folder_and_created_parents_are_owner_only(tmp_path: Path) -> None:
    folder = private.new_folder("x-", tmp_path / "a" / "b", OPTION)
    assert folder.parent == tmp_path / "a" / "b"
    assert {stat.S_IMODE(one.stat().st_mode) for one in (folder, folder.parent, tmp_path / "a")} == {0o700}


def test_shared_folder_with_sticky_bit_is_used(shared: Path) -> None:
    assert private.new_folder("x-", shared / "mine", OPTION).parent == shared / "mine"


def test_shared_folder_is_refused_where_others_must_not_add_files_and_one_in_it_is_not(shared: Path) -> None:
    with pytest.raises(ConfigError, match="can be written by other users"):
        private.guarded(shared, OPTION, shared=False)
    assert private.guarded(shared / "mine", OPTION, shared=False) == shared / "mine"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
@pytest.mark.parametrize("inside", ["", "deeper/still"])
def test_folder_writable_by_others_is_refused_with_option(tmp_path: Path, mode: int, inside: str) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    (folder / "deeper").mkdir()
    folder.chmod(mode)
    said = refusal(folder / inside)
    assert f"{OPTION}: {folder} can be written by other users" in said
    assert f"let {OPTION} name a folder" in said
    assert list((folder / "deeper").iterdir()) == []


def test_link_into_writable_folder_is_refused_and_other_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "safe").mkdir(0o700)
    (tmp_path / "bad").symlink_to("open")
    (tmp_path / "good").symlink_to(tmp_path / "open" / ".." / "safe")
    assert "can be written by other users" in refusal(tmp_path / "bad")
    assert "can be written by other users" in refusal(tmp_path / "good")  # its path leads through `open`
    (tmp_path / "good").unlink()
    (tmp_path / "good").symlink_to("safe/../safe")
    assert private.new_folder("x-", tmp_path / "good", OPTION).parent == tmp_path / "safe"
    (tmp_path / "round").symlink_to("round")
    assert "too many symbolic links" in refusal(tmp_path / "round")


def test_unusable_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "not a folder" in refusal(tmp_path / "file")
    assert f"{OPTION}: the folder cannot be used" in refusal(tmp_path / "file" / "below")
    assert f"{OPTION}: the folder cannot be used" in refusal(Path("/proc/nothing/here"))


@as_root
def test_folder_created_first_by_another_user_is_refused(shared: Path) -> None:
    def squat() -> str:
        (shared / "thl-spark").mkdir()
        (shared / "link").symlink_to("/root")
        return "made"

    assert as_user(NOBODY, squat) == "made"
    for name in ("thl-spark", "link"):
        said = refusal(shared / name)
        assert f"{OPTION}: {shared / name} belongs to the user" in said
    assert list((shared / "thl-spark").iterdir()) == []


@as_root
def test_ordinary_user_in_shared_folder_is_protected_as_well(shared: Path) -> None:
    (shared / "roots").mkdir()
    other = shared / "others"
    other.mkdir()
    os.chown(other, NOBODY - 1, NOBODY - 1)

    def begin() -> str:
        made = private.new_folder("x-", shared / "mine", OPTION)
        return f"{made.parent.name} {stat.S_IMODE(made.stat().st_mode):o}"

    assert as_user(NOBODY, begin) == "mine 700"
    said = as_user(NOBODY, lambda: str(private.new_folder("x-", other, OPTION)))
    assert "ConfigError" in said
    assert "belongs to the user" in said
    # A parent of root's is accepted, but this user cannot write there.
    said = as_user(NOBODY, lambda: str(private.new_folder("x-", shared / "roots" / "mine", OPTION)))
    assert f"ConfigError: {OPTION}: the folder cannot be used: Permission denied" in said


@as_root
def test_default_folder_is_new_and_leftovers_of_others_stay(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    theirs, mine = shared / "thl-apply-4194304-theirs", shared / "thl-apply-4194304-mine"  # no process has this ID
    for folder in (theirs, mine):
        folder.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    made = checkpoint.fresh(None)
    assert made.parent == shared
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert theirs.exists()
    assert not mine.exists()


def test_files_are_owner_only_and_links_are_refused(tmp_path: Path) -> None:
    for opened in (private.open_new, private.open_to_append):
        path = tmp_path / opened.__name__
        for _ in range(2):
            with opened(path) as file:
                file.write(b"a")
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            path.chmod(0o666)
        opened(path).close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        link = tmp_path / f"{opened.__name__}-link"
        link.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(OSError) as refused:
            opened(link)
        assert refused.value.errno == errno.ELOOP
    assert (tmp_path / "open_new").read_bytes() == b""
    assert (tmp_path / "open_to_append").read_bytes() == b"aa"
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("owner", [pytest.param(NOBODY, marks=as_root), os.geteuid()])
@pytest.mark.parametrize("read", [True, False])
def test_pipe_is_refused_at_once(owner: int, read: bool, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    os.chown(pipe, owner, -1)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK) if read else None
    for opened in (private.open_new, private.open_to_append, private.open_to_update):
        refused: list[OSError] = []

        def attempt(opened: Callable[[Path], BinaryIO] = opened, refused: list[OSError] = refused) -> None:
            try:
                opened(pipe).close()
            except OSError as error:
                refused.append(error)

        attempting = threading.Thread(target=attempt, daemon=True)
        attempting.start()
        attempting.join(PATIENCE)
        assert len(refused) == 1, opened
    if reader is not None:
        os.close(reader)


@as_root
def test_file_created_first_by_another_user_is_refused_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.write_bytes(b"theirs")
    path.chmod(0o666)
    os.chown(path, NOBODY, NOBODY)
    for opened in (private.open_new, private.open_to_append):
        with pytest.raises(PermissionError):
            opened(path)
    assert path.read_bytes() == b"theirs"
