"""Folders and files in which no other user of this machine can read, write, or put something in place of ours.

A folder of ours is only as safe as what it lies in: who may write to a folder above can rename ours away and put
another one there. So a folder is used only if each one above it belongs to root or to us, and if others may write to
one of them, it keeps each user's entries from the others (the sticky bit, as /tmp has it).
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO, Final, Literal

from connector.errors import ConfigError

FOLDER: Final = 0o700
FILE: Final = 0o600
OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
_LINKS: Final = 40  # as many as Linux follows


def new_folder(prefix: str, parent: Path | None, option: str) -> Path:
    """A new, empty folder that is ours alone.

    Args:
        prefix: the first part of its name.
        parent: where; made where it is missing. None: the system's folder for temporary files (TMPDIR).
        option: what the user sets to have it elsewhere, for the error.

    Raises:
        ConfigError: another user could put another folder in its place, or it cannot be made.
    """
    try:
        checked = guarded(parent or Path(tempfile.gettempdir()), option)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=checked))
    except OSError as error:
        raise _unusable(parent or "TMPDIR", error, option) from error


def guarded(folder: Path, option: str) -> Path:
    """A folder whose entries no other user can exchange; made (0700) where it is missing.

    Args:
        folder: may have symbolic links in its path, which are checked like folders.
        option: what the user sets to have another one, for the error.

    Returns:
        The same folder, without links.

    Raises:
        ConfigError: another user owns it or a folder above it, or may write there; or it cannot be made.
    """
    place = Path("/")
    _check(place, option)
    ahead = list(reversed(folder.absolute().parts[1:]))
    links = 0
    while ahead:
        name = ahead.pop()
        if name == "..":
            place = place.parent
            continue
        place /= name
        try:
            _make(place)
            _check(place, option)
            if place.is_symlink():
                links += 1
                target = place.readlink()
                if links > _LINKS:
                    raise ConfigError(f"{option}: too many symbolic links", folder=folder)
                place = Path("/") if target.is_absolute() else place.parent
                ahead += reversed([part for part in target.parts if part != "/"])
        except OSError as error:
            raise _unusable(folder, error, option) from error
    if not place.is_dir():
        raise ConfigError(f"{option}: not a folder", folder=folder)
    return place


def open_new(path: Path) -> BinaryIO:
    """Open a file to write, empty, that no other user may read; a symbolic link or another user's file is refused.

    Raises:
        OSError: it cannot be written.
    """
    file = _opened(path, os.O_WRONLY, "wb")
    file.truncate()
    return file


def open_to_append(path: Path) -> BinaryIO:
    """Open a file to write at its end, made where it is missing, as `open_new` does.

    Raises:
        OSError: it cannot be written.
    """
    return _opened(path, os.O_WRONLY | os.O_APPEND, "ab")


def ours(path: Path) -> bool:
    """Whether a folder (and no symbolic link to one) belongs to the user as whom we run."""
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=FOLDER)
    except FileExistsError:
        return
    except OSError:
        if not os.path.lexists(folder):
            raise


def _check(place: Path, option: str) -> None:
    """Refuse a folder, or a link, that another user can exchange or write to."""
    found = place.lstat()
    if found.st_uid not in {0, os.geteuid()}:
        _refuse(place, f"belongs to the user {_name(found.st_uid)}", option)
    if stat.S_ISLNK(found.st_mode):
        return  # its mode means nothing
    if found.st_mode & OTHERS and not found.st_mode & stat.S_ISVTX:
        _refuse(place, "can be written by other users", option)


def _refuse(place: Path, why: str, option: str) -> None:
    raise ConfigError(
        f"{option}: {place} {why}, who could put their files in place of ours",
        hint=f"let {option} name a folder that only {_name(os.geteuid())} may write to, all folders above it included "
        f"(chmod go-w, or chmod +t where others must write)",
        folder=place,
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _unusable(folder: object, error: OSError, option: str) -> ConfigError:
    return ConfigError(
        f"{option}: the folder cannot be used: {error.strerror}",
        hint=f"let {option} name a folder that this user may write to",
        folder=folder,
    )


def _opened(path: Path, flags: int, mode: Literal["wb", "ab"]) -> BinaryIO:
    file = os.fdopen(os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE), mode)
    owner = os.fstat(file.fileno()).st_uid
    if owner != os.geteuid():
        file.close()
        raise PermissionError(errno.EPERM, f"it belongs to the user {_name(owner)}", str(path))
    os.fchmod(file.fileno(), FILE)  # one that was there before us
    return file
