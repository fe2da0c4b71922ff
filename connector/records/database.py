"""The embedded database of the record store: RocksDB.

It checks a sum of each block that it reads. Writes go to a log of its own, which is not synced: after a crash of the
process nothing is lost, after one of the machine the newest writes may be, in order.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, lockf
from pathlib import Path
from shutil import disk_usage
from typing import Any, Final

from connector import private_files as private
from connector.errors import ConfigError, DiskUnavailable, RecordsDamaged

OPTION: Final = "source.records.dir"
REBUILD: Final = "thl records rebuild"
WRITE_BUFFER: Final = 32 << 20
BLOCK: Final = 8 << 10
FILTER_BITS: Final = 10  # of a key in the filter that tells which files need not be read
UMASK: Final = 0o077
READERS: Final = 16  # threads: each waits for the disk most of the time
LOCK: Final = "LOCK"  # the file that RocksDB locks
CURRENT: Final = "CURRENT"  # names the file with the list of all others
FULL: Final = 1 << 20  # bytes that are free on a disk on which the library can write no more
SHARE: Final = 16  # keys that a reader gets at least
OWN: Final = re.compile(  # the names of the library's files
    r"CURRENT|IDENTITY|LOCK|LOG(\.old\.\d+)?|(MANIFEST|OPTIONS)-\d+|\d+\.(sst|log)|(OPTIONS-)?\d+\.dbtmp|rocksdict-config\.json"
)


class Database:
    """Keys and values, both bytes, in the order of the keys' bytes.

    Args:
        folder: the folder, which belongs to this database alone; created if missing.
        cache_bytes: memory for blocks that were read.
        direct: read and write past the system's cache of files.
        readers: threads that read many keys.

    Raises:
        ConfigError: the folder is not usable, another process has it open, or the package is missing.
        RecordsDamaged: its files are damaged.
        DiskUnavailable: the disk is full or fails.
    """

    def __init__(self, folder: Path, *, cache_bytes: int, direct: bool = False, readers: int = READERS) -> None:
        self.folder = private.guarded(folder, OPTION, shared=False)
        if not (self.folder / CURRENT).exists():
            _check_own(self.folder)
        self.folder.chmod(private.FOLDER)
        library = _library()
        checked = library.ReadOptions()
        checked.set_verify_checksums(True)
        self._umask = os.umask(UMASK)  # until it is closed: threads of the library make files at any time
        try:
            with self._errors():
                self._db: Any = library.Rdict(str(self.folder), _options(library, cache_bytes, direct=direct))
                self._db.set_read_options(checked)
        except BaseException:
            os.umask(self._umask)
            raise
        self._batch_type = library.WriteBatch
        self._read_options = library.ReadOptions
        self._write_options = library.WriteOptions
        self._readers = ThreadPoolExecutor(readers, thread_name_prefix="records") if readers > 1 else None
        self._share = readers

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        with self._errors():
            found: bytes | None = self._db.get(key)
            return found

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """The value of each key; many are divided among threads."""
        with self._errors():
            if self._readers is None or len(keys) < 2 * SHARE:
                found: list[bytes | None] = self._db.get(keys)
                return found
            share = max(SHARE, -(-len(keys) // self._share))
            shares = [keys[at : at + share] for at in range(0, len(keys), share)]
            return [value for found in self._readers.map(self._db.get, shares) for value in found]

    def items(self, start: bytes, end: bytes, *, backwards: bool = False) -> Iterator[tuple[bytes, bytes]]:
        """The keys from `start` on and before `end`, with their values."""
        options = self._read_options()
        options.set_verify_checksums(True)
        with self._errors():
            at = self._db.iter(options)
            try:
                at.seek_for_prev(end) if backwards else at.seek(start)
                while at.valid():
                    key = at.key()
                    if key < start or (key >= end and not backwards):
                        break
                    if key < end:
                        yield key, at.value()
                    at.prev() if backwards else at.next()
                at.status()
            finally:
                del at  # the frame of an error would keep the database open

    def write(self, puts: Iterable[tuple[bytes, bytes]], deletes: Iterable[bytes] = (), *, sync: bool = False) -> None:
        """Write all of it, or after a crash nothing."""
        batch = self._batch_type(raw_mode=True)
        for key in deletes:
            batch.delete(key)
        for key, value in puts:
            batch.put(key, value)
        options = self._write_options()
        options.sync = sync
        with self._errors():
            self._db.write(batch, options)

    def delete_range(self, start: bytes, end: bytes) -> None:
        """Delete the keys from `start` on and before `end`, without reading them."""
        with self._errors():
            self._db.delete_range(start, end)

    def size(self) -> int:
        """Bytes on disk; may be asked for by any thread."""
        found = 0
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):  # threads of the library delete files at any time
                found += path.stat().st_size
        return found

    def close(self) -> None:
        """Close it."""
        if self._readers is not None:
            self._readers.shutdown()
        try:
            with self._errors():
                self._db.close()
        finally:
            os.umask(self._umask)

    def discard(self) -> None:
        """Close it, and let no process open it again before `remove`."""
        with suppress(RecordsDamaged, DiskUnavailable):  # it is damaged
            self.close()
        (self.folder / CURRENT).unlink(missing_ok=True)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            text = str(error)
            if not _of_library(error):
                raise
            raise _translated(text, self.folder) from error


def remove(folder: Path) -> None:
    """Delete a database's files. The folder stays.

    Raises:
        ConfigError: there is something else in it.
    """
    _check_own(folder)
    # Without it nothing opens what an interruption leaves.
    (folder / CURRENT).unlink(missing_ok=True)
    for path in sorted(folder.iterdir()):
        path.unlink()


def _check_own(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        if not (stat.S_ISREG(path.lstat().st_mode) and OWN.fullmatch(path.name)):
            raise ConfigError(
                f"{OPTION}: the folder has something else in it",
                hint=f"let {OPTION} name a folder of its own, also below this one",
                file=path,
                option=OPTION,
            )


def _options(library: Any, cache_bytes: int, *, direct: bool) -> Any:
    blocks = library.BlockBasedOptions()
    blocks.set_block_cache(library.Cache(cache_bytes))
    blocks.set_bloom_filter(FILTER_BITS, False)
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(True)
    blocks.set_block_size(BLOCK)
    blocks.set_format_version(5)
    options = library.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_paranoid_checks(True)
    options.set_block_based_table_factory(blocks)
    options.set_compression_type(library.DBCompressionType.lz4())
    options.set_level_compaction_dynamic_level_bytes(True)
    options.set_write_buffer_size(WRITE_BUFFER)
    options.set_max_background_jobs(2)
    options.set_bytes_per_sync(1 << 20)
    options.set_use_direct_reads(direct)
    options.set_use_direct_io_for_flush_and_compaction(direct)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1 << 20)
    return options


@contextmanager
def reserved(folder: Path) -> Iterator[None]:
    """Let no other process open a database, before anything that would fence the producer of one that has it open.

    This process opens it within: locks are the process's (fcntl). So it is closed before the reservation ends, and that
    ends already when RocksDB closes its own file. A database that is not there yet is not reserved.

    Raises:
        ConfigError: another process has it open, or has reserved it.
    """
    with ExitStack() as held:
        try:
            lockf(held.enter_context((folder / LOCK).open("r+b")), LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise _in_use(folder) from None
        except OSError:
            held.close()  # there is none, or it cannot be used, which is said when it is opened
        yield


def _in_use(folder: Path) -> ConfigError:
    return ConfigError(
        f"{OPTION}: another process has the record store open",
        hint="a producer of this service, or `thl records`: wait for its end, or end it (thl offline --producer); or a "
        "producer of another service: each needs a folder of its own",
        folder=folder,
    )


def _library() -> Any:
    try:
        import rocksdict  # noqa: PLC0415 - optional: nothing else needs it
    except ImportError as error:
        raise ConfigError(
            f"{OPTION} needs a package that is not installed",
            hint="pip install 'thl-connector[records]'; or leave the option empty",
            option=OPTION,
        ) from error
    return rocksdict


def _of_library(error: Exception) -> bool:
    """True for an error of RocksDB: the binding raises it as a plain Exception, or as one of its own."""
    return type(error) is Exception or type(error).__module__.startswith("rocksdict")


def _translated(text: str, folder: Path) -> ConfigError | RecordsDamaged | DiskUnavailable:
    fields = {"folder": folder, "why": text[:500]}
    if ("lock file" in text or "lock hold by" in text) and "IO error" in text:
        return _in_use(folder)
    # The library reports the first error of a full disk as such, and later only that its writer has had one.
    if "No space left" in text or ("IO error" in text and _is_full(folder)):
        return DiskUnavailable(
            "the disk of the record store is full",
            hint=f"make room there, or let {OPTION} name another folder",
            **fields,
        )
    damaged = ("Corruption", "No such file", "not found", "Invalid argument")
    if any(one in text for one in damaged):
        return RecordsDamaged(
            "the record store is damaged", hint=f"{REBUILD}; or set {OPTION} to another folder", **fields
        )
    return DiskUnavailable("the record store cannot be read or written", hint=f"look at the disk of {OPTION}", **fields)


def _is_full(folder: Path) -> bool:
    try:
        return disk_usage(folder).free < FULL
    except OSError:  # the folder is gone, which is another error
        return False
