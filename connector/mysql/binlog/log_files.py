"""Files of a binary log: arguments that name them, and their bytes, compressed or not.

The first bytes of a file tell its kind, not its name: gzip (RFC 1952), zstd (RFC 8878), a binary log, or one
that its server has encrypted.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import zstandard

from connector.errors import ConfigError, ConnectorError, CorruptBinlog, Unsupported

MAGIC: Final = b"\xfebin"
ENCRYPTED: Final = b"\xfdbin"
GZIP: Final = b"\x1f\x8b"
ZSTD: Final = b"\x28\xb5\x2f\xfd"
MAX_WINDOW: Final = 1 << 31
STDIN: Final = "-"
NUMBERED: Final = re.compile(r"(?P<base>.+)\.(?P<number>\d+)(?:\.gz|\.zst)?")


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of a binary log.

    Args:
        path: path of the file; None: standard input.
        name: name of the file on the server, without folder and `.gz` or `.zst`.
    """

    path: Path | None
    name: str

    @classmethod
    def at(cls, path: Path) -> LogFile:
        """The file at a path."""
        return cls(path, path.name.removesuffix(".gz").removesuffix(".zst"))

    def __str__(self) -> str:
        return STDIN if self.path is None else str(self.path)


def log_files(arguments: Iterable[str]) -> list[LogFile]:
    """The files of arguments, in order: `-` is standard input, a folder is all its numbered files in their order.

    Raises:
        ConfigError: a file does not exist, or a folder has files of no log or of several.
    """
    found: list[LogFile] = []
    for argument in arguments:
        path = Path(argument)
        if argument == STDIN:
            found.append(LogFile(None, STDIN))
        elif path.is_dir():
            found += _of_folder(path)
        elif path.exists():
            found.append(LogFile.at(path))
        else:
            raise ConfigError("no such file", file=argument)
    if sum(file.path is None for file in found) > 1:
        raise ConfigError("standard input can be read only once")
    return found


def _of_folder(folder: Path) -> Iterator[LogFile]:
    numbered = {path: match for path in folder.iterdir() if (match := NUMBERED.fullmatch(path.name))}
    bases = sorted({match["base"] for match in numbered.values()})
    if len(bases) != 1:
        raise ConfigError(
            f"a folder with the files of {len(bases)} binary logs, not of one",
            hint="name the files instead" if bases else "binary logs are called binlog.000001, binlog.000002 …",
            folder=folder,
            logs=", ".join(bases) or None,
        )
    files: dict[int, Path] = {}
    for path, match in numbered.items():
        twin = files.setdefault(int(match["number"]), path)
        if twin is not path:
            raise ConfigError(
                "a file of the binary log is there twice", folder=folder, files=f"{twin.name} {path.name}"
            )
    for number in sorted(files):
        yield LogFile.at(files[number])


class LogBytes:
    """The decompressed bytes of a file; a `ByteSource`.

    Args:
        file: the file; opened here.
        stdin: standard input, if the file is.

    Raises:
        ConfigError: the file cannot be opened.
    """

    def __init__(self, file: LogFile, stdin: BinaryIO | None = None) -> None:
        self.offset = 0
        try:
            raw = stdin if file.path is None else file.path.open("rb")
            if raw is None:
                raise ValueError("there is no standard input to read")
            self._raw = raw
            head = self._raw.peek(4)[:4]  # type: ignore[attr-defined]
        except OSError as error:
            raise ConfigError(f"the file cannot be read: {error.strerror}", file=str(file)) from error
        self._stream: Any = self._raw
        self.compressed = True
        if head.startswith(GZIP):
            self._stream = gzip.GzipFile(fileobj=self._raw)
        elif head == ZSTD:
            self._stream = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).stream_reader(
                self._raw, read_across_frames=True
            )
        else:
            self.compressed = False

    def receive(self, into: memoryview, timeout: float = 0) -> int:
        """Fills `into`; 0 at the end.

        Raises:
            CorruptBinlog: the file cannot be decompressed or read.
        """
        del timeout
        try:
            size = int(self._stream.readinto1(into))
        except (EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
            raise CorruptBinlog(f"the file cannot be decompressed: {error}") from error
        except OSError as error:
            raise CorruptBinlog(f"the file cannot be read: {error.strerror}") from error
        self.offset += size
        return size

    def close(self) -> None:
        """Closes the file."""
        self._raw.close()


def not_a_log(head: bytes) -> ConnectorError | None:
    """The error for a file by its first four bytes (fewer if it is shorter); None: it is a binary log."""
    if head == MAGIC:
        return None
    if head == ENCRYPTED:
        fetch = "fetch it from the server: mysqlbinlog --read-from-remote-server --raw"
        encrypted = Unsupported("the file is encrypted by its server (binlog_encryption)", hint=fetch)
        return encrypted.with_file_hint(fetch)
    if len(head) < len(MAGIC):
        return CorruptBinlog(f"the file ends within its first four bytes: it has {len(head)}")
    return CorruptBinlog(f"the file is not a binary log: it begins with {head.hex(' ')}, not with {MAGIC.hex(' ')}")
