"""The source's transactions, one after the other, in pieces: what `encode` reads."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from connector.errors import CorruptBinlog
from connector.log.gtid.source_gtids import HasGtids
from connector.log.transaction.definition import Item
from connector.log.transaction.position import SourcePosition
from connector.mysql.binlog.decoder import Decoder
from connector.mysql.binlog.events.capture_filter import CaptureFilter
from connector.mysql.binlog.frames import EventFrames, Frames, PacketFrames
from connector.mysql.schema_history.column_names import ColumnNameResolver, RefusingResolver
from connector.mysql.server.dump import ByteSource

WAKE = 0.2  # seconds after which `read` comes back with nothing, so that its caller can be told to stop


class BinlogReader:
    """Reads a binary log.

    It never connects again: after an error it is at its end, and a new one starts from the last position that is
    resumable, which is not this class's to know.

    Args:
        source: gives the bytes; `close` closes it.
        frames: cuts them.
        filters: which schemas and tables are for us.
        service: the name under which ignored events are counted.
        batch_bytes: encoded bytes of a transaction after which a piece is handed out.
        file: the log file's name, where the source does not tell it itself.
        naming: names the columns that the log does not; None: such rows are refused.
        known: GTIDs of transactions whose rows are not to be decoded, because they are left out anyway.
        created: is given when each file was begun, seconds since 1970 UTC, as its format description says.
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
    ) -> None:
        self._source = source
        self._frames = frames
        self._decoder = Decoder(frames, filters, resolver or RefusingResolver(), batch_bytes, service, file, known)
        if created is not None:
            self._decoder.created = created
        self._ended = False

    @classmethod
    def from_stream(
        cls,
        source: ByteSource,
        *,
        filters: CaptureFilter,
        service: str,
        batch_bytes: int,
        resolver: ColumnNameResolver | None = None,
    ) -> BinlogReader:
        """Read what `open_stream` opened."""
        return cls(source, PacketFrames(), filters=filters, service=service, batch_bytes=batch_bytes, resolver=resolver)

    @classmethod
    def from_file(cls, path: Path, *, filters: CaptureFilter, service: str, batch_bytes: int) -> BinlogReader:
        """Read one file of a binary log, as the server wrote it."""
        source = FileSource(path.open("rb", buffering=0))
        return cls(source, EventFrames(), filters=filters, service=service, batch_bytes=batch_bytes, file=path.name)

    @property
    def position(self) -> SourcePosition:
        """Behind the last event that was decoded; seen, not resumable."""
        return self._decoder.position

    @property
    def ended(self) -> bool:
        """Whether a file was read to its end. A stream never ends so: it raises."""
        return self._ended

    def read(self, timeout: float = WAKE) -> list[Item]:
        """What came since the last call, in order. Blocks at most about `timeout` seconds; may be empty.

        Raises:
            SourceUnavailable: the stream is gone; may be opened again.
            CorruptBinlog, Unsupported, ValueNotRepresentable: naming file, position and event type.
            PreflightError: the source cannot give its log from there.
        """
        found = self._decoder.decode()
        if found or self._ended:
            return found
        if self._frames.receive(self._source, timeout) == 0:
            self._end()
        return self._decoder.decode()

    def close(self) -> None:
        """Close the source. No `read` may follow."""
        self._source.close()

    def _end(self) -> None:
        self._ended = True
        if self._frames.left or self._decoder.inside:
            raise CorruptBinlog(
                "the file ends inside of an event or a transaction",
                file=self.position.file,
                pos=self.position.offset,
            )


class FileSource:
    """A file's bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def receive(self, into: memoryview, timeout: float) -> int:
        """Fill `into`; 0 at the end. A file does not wait."""
        del timeout
        return int(self._file.readinto(into))  # type: ignore[attr-defined]

    def close(self) -> None:
        """Close the file."""
        self._file.close()
