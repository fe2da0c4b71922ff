"""The folder of a relay: its lock, and its files `thl.data.0000000001`, `thl.data.0000000002` …"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from connector import private_files as private
from connector.clock import Clock
from connector.errors import ConfigError, DiskUnavailable, LogDamaged, disk_error
from connector.log.ids import Seqno
from connector.relay.frames import Broken, FileHead, file_head, frames

LOCK: Final = "disklog.lck"
LOG: Final = logging.getLogger(__name__)

OPTION: Final = "relay.dir"
_TRIES: Final = 20
_TRY_SECONDS: Final = 0.05
_NAME: Final = re.compile(r"thl\.data\.(\d{10})")


@dataclass(frozen=True, slots=True)
class RelayFile:
    """A file of the relay.

    Args:
        path: its path.
        number: its number, from 1 on.
        head: its first record.
    """

    path: Path
    number: int
    head: FileHead

    @property
    def first(self) -> Seqno:
        """The first event that it may have."""
        return Seqno(self.head.seqno + 1)

    @property
    def name(self) -> str:
        """Its name."""
        return self.path.name


class Owner(NamedTuple):
    """The claim under which a target's applier writes to a folder.

    Args:
        token: of the claim. A target's tokens only rise.
        identity: the target's random name; "": it has none, or an earlier version wrote here.
    """

    token: int
    identity: str = ""

    def is_other_than(self, before: Owner) -> bool:
        """True if this is another target than the owner before."""
        return bool(self.identity and before.identity) and self.identity != before.identity


class Lock:
    """Keeps other processes from writing or deleting the files of a folder, until it is closed.

    Its file has the owner: the target whose applier wrote last, and its claim.

    Args:
        folder: the folder.
        clock: waits for readers, which have the lock for a moment (`locked`).

    Raises:
        ConfigError: another process has it, or the folder is not usable.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._path = folder / LOCK
        try:
            self._file = private.open_to_update(self._path)
        except OSError as error:
            raise unusable(folder, error) from error
        try:
            for _ in range(_TRIES):
                if self._locked():
                    return
                clock.sleep(_TRY_SECONDS)
        except OSError as error:
            self._file.close()
            raise unusable(folder, error) from error
        self._file.close()
        raise ConfigError(
            "another process uses the relay: two appliers cannot write to one folder",
            hint=f"give each applier a folder of its own in {OPTION}; end the applier before thl purge",
            file=folder / LOCK,
        )

    def _locked(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    @property
    def owner(self) -> Owner:
        """The owner; of token 0 before the first claim.

        Raises:
            ConfigError: the file has something else.
        """
        text = os.pread(self._file.fileno(), 100, 0)
        try:
            token, *identity = text.decode().split() or ["0"]
            return Owner(int(token), "".join(identity[:1]))
        except ValueError as error:
            raise ConfigError(
                "the relay's lock file has something else than a token",
                hint=f"{OPTION} names its folder; delete the file if no other target needs this relay",
                file=self._file.name,
            ) from error

    def claim(self, owner: Owner) -> None:
        """Store the owner.

        Raises:
            OSError: it cannot be written.
        """
        text = b"%020d %s\n" % (owner.token, owner.identity.encode())
        os.ftruncate(self._file.fileno(), os.pwrite(self._file.fileno(), text, 0))
        os.fdatasync(self._file.fileno())

    def check(self) -> None:
        """Check that the folder still has the lock's file.

        Raises:
            OSError: it does not: another process may have the folder, too.
        """
        check_there(self._path, self._file)

    def close(self) -> None:
        """Release the folder."""
        self._file.close()


def check_private(folder: Path) -> None:
    """Check that no other user can have put a file into a relay, or can replace one; a folder that is missing passes.

    For what changes a target, or the relay. Commands and programs that only print or read a relay take any folder, for
    example a copy that another user made: whoever names it trusts its files.

    Raises:
        ConfigError: another user owns it or a parent, or may write to one of them.
    """
    if folder.exists():
        private.guarded(folder, OPTION, shared=False)


def path_of(folder: Path, number: int) -> Path:
    """Return the path of the file with a number."""
    return folder / f"thl.data.{number:010}"


def locked(folder: Path) -> bool:
    """Return True while a process has the lock of a folder."""
    try:
        with open_to_read(folder / LOCK) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def relay_files(folder: Path, *, torn: bool = False, checksums: bool = True) -> list[RelayFile]:
    """Return the files of a relay in order, without empty files.

    Args:
        folder: the folder.
        torn: leave out a last file, too, that ends within its first record.
        checksums: False: warn of a first record with a wrong checksum.

    Raises:
        ConfigError: the folder does not exist, or cannot be read.
        LogDamaged: the first record of a file is damaged.
    """
    try:
        paths = sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))
        found = []
        for path in paths:
            try:
                with open_to_read(path) as file:
                    frame = next(frames(file, checksums=checksums))
                    head = file_head(frame)
                    if frame.wrong:
                        warn_of_checksum(path, frame.begin)
            except StopIteration:
                continue  # empty
            except Broken as error:
                if torn and error.cut and path == paths[-1]:
                    continue
                raise damaged(path, error) from error
            found.append(RelayFile(path, int(path.name[-10:]), head))
    except FileNotFoundError as error:
        if error.filename is not None and Path(error.filename) != folder:
            return relay_files(folder, torn=torn, checksums=checksums)  # the applier has deleted a file meanwhile
        raise unusable(folder, error) from error
    except OSError as error:
        raise unusable(folder, error) from error
    return found


def warn_of_checksum(path: Path, at: int, seqno: int | None = None) -> None:
    """Warn that a record is used although its checksum is wrong.

    Args:
        path: the file.
        at: the offset of the record.
        seqno: its event.
    """
    fields = {"file": str(path), "byte": at} | ({} if seqno is None else {"seqno": seqno})
    LOG.warning("the checksum of a record is wrong: its values may be, too", extra=fields)


def gapless(files: Sequence[RelayFile]) -> Sequence[RelayFile]:
    """Return the last files that lack no events between them."""
    first = len(files) - 1
    while first > 0 and files[first].head.continues and files[first - 1].number == files[first].number - 1:
        first -= 1
    return files[first:]


def later_paths(folder: Path, number: int) -> list[Path]:
    """Return the files after the one with a number, whatever is in them, the last one first."""
    return [
        path
        for path in sorted(folder.iterdir(), reverse=True)
        if _NAME.fullmatch(path.name) and int(path.name[-10:]) > number
    ]


def open_private(path: Path) -> BinaryIO:
    """Open a file of the relay for appending; create it, readable by this user only.

    Raises:
        OSError: it cannot be written.
    """
    return private.open_to_append(path)


def check_there(path: Path, opened: BinaryIO) -> None:
    """Check that a path still names the file that was opened by it.

    Raises:
        OSError: it does not.
    """
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(opened.fileno()), path.stat(follow_symlinks=False)):
            return
    raise OSError(errno.ESTALE, f"another program has deleted, moved or replaced {path}")


def open_to_read(path: Path, buffering: int = -1) -> BinaryIO:
    """Open a file of the relay for reading.

    Raises:
        OSError: it cannot be read, or it is no regular file: a named pipe would wait for a writer, maybe for ever.
    """
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, f"{path.name} is not a regular file", str(path))
    return os.fdopen(number, "rb", buffering)


def sync_folder(folder: Path) -> None:
    """Wait until the names of the folder's files are on the disk.

    Raises:
        OSError: they cannot be written.
    """
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def unusable(folder: Path, error: OSError) -> ConfigError | DiskUnavailable:
    """Return the error of a folder that cannot be used, or whose disk is full or fails."""
    kind = disk_error(error)
    full = f"make room on the disk of {OPTION}: thl purge --to-seqno"
    hint = full if kind is DiskUnavailable else f"{OPTION} names its folder"
    return kind(f"the relay cannot be used: {error.strerror}", hint=hint, folder=str(folder))


def damaged(path: Path, error: Broken, seqno: int | None = None, epoch: int | None = None) -> LogDamaged:
    """Return the error of a damaged file.

    Args:
        path: the file.
        error: what is wrong.
        seqno, epoch: the last event before the damage.
    """
    after = "" if seqno is None else f": events from {seqno + 1} on are missing"
    return LogDamaged(
        f"the relay is damaged ({error}){after}",
        hint="where Kafka has these events, let relay.dir name an empty folder, or delete them with thl purge "
        "--from-seqno; thl list --relay --no-checksum prints a record whose checksum is wrong",
        file=str(path),
        last_whole=seqno,
        epoch=epoch,
    )
