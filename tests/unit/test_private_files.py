"""A folder is ours alone: no other user can put something in its place, whoever came first."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from connector import private_files as private
from connector.errors import ConfigError
from connector.spark import checkpoint

NOBODY = 65534
OPTION = "apply.checkpoint_dir"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user, too")


def as_user(uid: int, act: Callable[[], str]) -> str:
    """What an act says that is done as another user, in a process of its own."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            said = act()
        except BaseException as error:  # noqa: BLE001 (it is told to the test)
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
    """A folder like /tmp: everybody may write, nobody may take away what is another's."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def refusal(folder: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        private.new_folder("x-", folder, OPTION)
    return str(caught.value)


def test_a_new_folder_is_readable_by_its_owner_alone_and_so_is_what_is_made_above_it(tmp_path: Path) -> None:
    folder = private.new_folder("x-", tmp_path / "a" / "b", OPTION)
    assert folder.parent == tmp_path / "a" / "b"
    assert {stat.S_IMODE(one.stat().st_mode) for one in (folder, folder.parent, tmp_path / "a")} == {0o700}


def test_a_folder_for_everybody_with_the_sticky_bit_is_used(shared: Path) -> None:
    assert private.new_folder("x-", shared / "mine", OPTION).parent == shared / "mine"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
@pytest.mark.parametrize("inside", ["", "deeper/still"])
def test_a_folder_that_others_may_write_to_is_refused_with_the_option(tmp_path: Path, mode: int, inside: str) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    (folder / "deeper").mkdir()
    folder.chmod(mode)
    said = refusal(folder / inside)
    assert f"{OPTION}: {folder} can be written by other users" in said
    assert f"let {OPTION} name a folder" in said
    assert list((folder / "deeper").iterdir()) == []


def test_a_link_into_such_a_folder_is_refused_too_and_any_other_is_followed(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "safe").mkdir(0o700)
    (tmp_path / "bad").symlink_to("open")
    (tmp_path / "good").symlink_to(tmp_path / "open" / ".." / "safe")
    assert "can be written by other users" in refusal(tmp_path / "bad")
    assert "can be written by other users" in refusal(tmp_path / "good")  # its way leads through it
    (tmp_path / "good").unlink()
    (tmp_path / "good").symlink_to("safe/../safe")
    assert private.new_folder("x-", tmp_path / "good", OPTION).parent == tmp_path / "safe"
    (tmp_path / "round").symlink_to("round")
    assert "too many symbolic links" in refusal(tmp_path / "round")


def test_what_is_no_folder_or_cannot_be_made_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "not a folder" in refusal(tmp_path / "file")
    assert f"{OPTION}: the folder cannot be used" in refusal(tmp_path / "file" / "below")
    assert f"{OPTION}: the folder cannot be used" in refusal(Path("/proc/nothing/here"))


@as_root
def test_a_folder_that_another_user_made_first_is_refused(shared: Path) -> None:
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
def test_an_ordinary_user_is_as_safe_and_may_use_the_same_shared_folder(shared: Path) -> None:
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
    # Root's folder above is no danger; that one may not write there is told.
    said = as_user(NOBODY, lambda: str(private.new_folder("x-", shared / "roots" / "mine", OPTION)))
    assert f"ConfigError: {OPTION}: the folder cannot be used: Permission denied" in said


@as_root
def test_without_an_option_nobody_can_be_first_and_leftovers_of_others_stay(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    theirs, mine = shared / "thl-apply-4194304-theirs", shared / "thl-apply-4194304-mine"  # no process has that id
    for folder in (theirs, mine):
        folder.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    made = checkpoint.fresh(None)
    assert made.parent == shared
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert theirs.exists()
    assert not mine.exists()


def test_files_are_their_owners_alone_and_no_link_is_written_through(tmp_path: Path) -> None:
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
        with pytest.raises(OSError, match="symbolic links"):
            opened(link)
    assert (tmp_path / "open_new").read_bytes() == b""
    assert (tmp_path / "open_to_append").read_bytes() == b"aa"
    assert not (tmp_path / "elsewhere").exists()


@as_root
def test_a_file_that_another_user_made_first_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.write_bytes(b"theirs")
    path.chmod(0o666)
    os.chown(path, NOBODY, NOBODY)
    for opened in (private.open_new, private.open_to_append):
        with pytest.raises(PermissionError, match="belongs to the user"):
            opened(path)
    assert path.read_bytes() == b"theirs"
