"""Reads a binary log as batches of transactions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from connector.errors import ConnectorError, CorruptBinlog
from connector.log.gtid.source_gtids import HasGtids
from connector.log.transaction.definition import Item
from connector.log.transaction.position import SourcePosition
from connector.mysql.binlog.byte_source import ByteSource
from connector.mysql.binlog.decoder import Decoder
from connector.mysql.binlog.events.capture_filter import CaptureFilter
from connector.mysql.binlog.events.column_names import ColumnNameResolver, RefusingResolver
from connector.mysql.binlog.frames import EventFrames, Frames

WAKE = 0.2  # seconds after which `read` returns even without news, so that its caller can stop


class BinlogReader:
    """Reads a binary log.

    It does not reconnect: after an error, open a new reader at the last resumable position.

    Args:
        source: the bytes; `close` closes it.
        frames: cuts them into events.
        filters: decide what is captured.
        service: label of the metrics of ignored events.
        batch_bytes: encoded bytes of a transaction after which a batch is handed out.
        file: the log file's name, if the source does not send it.
        resolver: names columns that the log does not name; None: such rows are refused.
        known: GTIDs of transactions whose rows need not be decoded.
        created: filled with seconds since 1970 UTC when each file was begun, from its format description.
        leave_out: called with the error, the position and the size of an event that alone is left out; None: such an
            error ends reading.
    """

    def __init__(
        self,
        source: ByteSource,
        frames: Frames,
        *,
        filters: CaptureFilter,
        service: str,
        batch_bytes: int,
        file: str = "",
        resolver: ColumnNameResolver | None = None,
        known: HasGtids | None = None,
        created: dict[str, int] | None = None,
        leave_out: Callable[[ConnectorError, int, int], None] | None = None,
    ) -> None:
        self._source = source
        self._frames = frames
        self._decoder = Decoder(frames, filters, resolver or RefusingResolver(), batch_bytes, service, file, known)
        if created is not None:
            self._decoder.created = created
        self._decoder.leave_out = leave_out
        self._ended = False

    @classmethod
    def from_file(cls, path: Path, *, filters: CaptureFilter, service: str, batch_bytes: int) -> BinlogReader:
        """Returns a reader of one uncompressed file."""
        source = FileBytes(path.open("rb", buffering=0))
        return cls(source, EventFrames(), filters=filters, service=service, batch_bytes=batch_bytes, file=path.name)

    @property
    def position(self) -> SourcePosition:
        """Position after the last decoded event; not resumable inside of a transaction."""
        return self._decoder.position

    @property
    def in_use(self) -> bool:
        """True if a file's flag says that its server is writing it, or died while it was."""
        return self._decoder.in_use

    @property
    def ended(self) -> bool:
        """True if a file was read to its end. A stream raises at its end."""
        return self._ended

    def read(self, timeout: float = WAKE) -> list[Item]:
        """Reads what has arrived since the last call, in order; may be empty. Blocks at most about `timeout` seconds.

        Raises:
            SourceUnavailable: the stream is gone; it can be opened again.
            CorruptBinlog, Unsupported, ValueNotRepresentable: naming file, position and event type.
            PreflightError: the source cannot send its log from there.
        """
        found = self._decoder.decode()
        if found or self._ended:
            return found
        if self._frames.receive(self._source, timeout) == 0:
            self._end()
        return self._decoder.decode()

    def close(self) -> None:
        """Closes the source; `read` must not be called afterwards."""
        self._source.close()

    def _end(self) -> None:
        self._ended = True
        if self._frames.left or self._decoder.inside:
            raise CorruptBinlog(
                "the file ends inside of an event or a transaction",
                file=self.position.file,
                pos=self.position.offset,
            )


class FileBytes:
    """The bytes of a file; a `ByteSource`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def receive(self, into: memoryview, timeout: float) -> int:
        """Fills `into`; 0 at the end. `timeout` is not used."""
        del timeout
        return int(self._file.readinto(into))  # type: ignore[attr-defined]

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
