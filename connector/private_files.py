"""Creates folders and files that no other user of this machine can read, write or replace.

A user with write access to a parent folder can rename a folder and put another one in its place. So a folder is used
only if every parent belongs to root or to this user, and is either not writable by others or has the sticky bit, as
/tmp does. A folder with files whose names are known must not be writable by others at all.
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
    """Create an empty folder that only this user can access.

    Args:
        prefix: the first part of its name.
        parent: the parent folder, created if missing. None: the system's folder for temporary files (TMPDIR).
        option: the configuration field that names another parent, for the error.

    Raises:
        ConfigError: another user could replace it, or it cannot be created.
    """
    try:
        checked = guarded(parent or Path(tempfile.gettempdir()), option)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=checked))
    except OSError as error:
        raise unusable(parent or "TMPDIR", error, option) from error


def guarded(folder: Path, option: str, *, shared: bool = True) -> Path:
    """Return a folder whose entries no other user can replace; created with mode 0700 if missing.

    Args:
        folder: path of the folder; symbolic links in it are checked like folders.
        option: the configuration field that names another folder, for the error.
        shared: False: others must not be able to add entries either; the sticky bit is enough for parents only.

    Returns:
        The path without symbolic links.

    Raises:
        ConfigError: another user owns it or a parent, or may write to one of them; or it cannot be created.
    """
    current = Path("/")
    _check(current, option)
    parts = list(reversed(folder.absolute().parts[1:]))
    links = 0
    while parts:
        name = parts.pop()
        if name == "..":
            current = current.parent
            continue
        current /= name
        try:
            _make(current)
            _check(current, option)
            if current.is_symlink():
                links += 1
                target = current.readlink()
                if links > _LINKS:
                    raise ConfigError(f"{option}: too many symbolic links", folder=folder)
                current = Path("/") if target.is_absolute() else current.parent
                parts += reversed([part for part in target.parts if part != "/"])
        except OSError as error:
            raise unusable(folder, error, option) from error
    if not current.is_dir():
        raise ConfigError(f"{option}: not a folder", hint=f"let {option} name a folder", folder=folder)
    if not shared and current.stat().st_mode & OTHERS:
        raise ConfigError(
            f"{option}: {current} can be written by other users, who could put files there",
            hint=f"let {option} name a folder of its own, also below this one",
            folder=folder,
        )
    return current


def open_new(path: Path) -> BinaryIO:
    """Open an empty file for writing, readable by this user only; refuse a symbolic link or another user's file.

    Raises:
        OSError: it cannot be written.
    """
    file = _opened(path, os.O_WRONLY, "wb")
    file.truncate()
    return file


def open_to_append(path: Path) -> BinaryIO:
    """Open a file for appending, as `open_new` does; create it if missing.

    Raises:
        OSError: it cannot be written.
    """
    return _opened(path, os.O_WRONLY | os.O_APPEND, "ab")


def open_to_update(path: Path) -> BinaryIO:
    """Open a file for reading and writing, as `open_new` does; create it if missing.

    Raises:
        OSError: it cannot be written.
    """
    return _opened(path, os.O_RDWR, "r+b")


def owned(path: Path) -> bool:
    """Return True for a folder (not a symbolic link to one) of the user of this process."""
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def unusable(folder: object, error: OSError, option: str) -> ConfigError:
    """The error for a folder that cannot be created or written to; `option` names another one."""
    return ConfigError(
        f"{option}: the folder cannot be used: {error.strerror}",
        hint=f"set {option} to a folder that this user may write to",
        folder=folder,
    )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=FOLDER)
    except FileExistsError:
        return
    except OSError:
        if not os.path.lexists(folder):
            raise


def _check(folder: Path, option: str) -> None:
    """Refuse a folder or link that another user can replace or write to."""
    found = folder.lstat()
    if found.st_uid not in {0, os.geteuid()}:
        _refuse(folder, f"belongs to the user {_name(found.st_uid)}", option)
    if stat.S_ISLNK(found.st_mode):
        return  # a link's mode has no meaning
    if found.st_mode & OTHERS and not found.st_mode & stat.S_ISVTX:
        _refuse(folder, "can be written by other users", option)


def _refuse(folder: Path, reason: str, option: str) -> None:
    raise ConfigError(
        f"{option}: {folder} {reason}, who could replace its files",
        hint=f"let {option} name a folder that only {_name(os.geteuid())} may write to, all folders above it included "
        f"(chmod go-w, or chmod +t where others must write)",
        folder=folder,
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _opened(path: Path, flags: int, mode: Literal["wb", "ab", "r+b"]) -> BinaryIO:
    # Without waiting for the reader of a pipe: one that nobody reads is an error at once.
    opened = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, FILE)
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        os.close(opened)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is no file", str(path))
        raise PermissionError(errno.EPERM, f"it belongs to the user {_name(found.st_uid)}", str(path))
    file = os.fdopen(opened, mode)
    os.fchmod(file.fileno(), FILE)  # an existing file may have another mode
    return file
