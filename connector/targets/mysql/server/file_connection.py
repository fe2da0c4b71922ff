"""A connection that gives the server one file: the applier's own, for LOAD DATA LOCAL."""

from __future__ import annotations

from typing import Any, Final, Protocol

from pymysql.connections import Connection, MySQLResult
from pymysql.err import OperationalError

_PACKET: Final = 16 << 10  # asked for; a row in it may be much larger
_LARGEST: Final = 1 << 20  # sent: its length has to fit three bytes; the server joins what packets have


class File(Protocol):
    """A source of bytes, read like a file, block by block."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, about so many or more; none at the end."""


class FileConnection(Connection):
    """A connection that sends `file` when the server asks for a file, whatever name it asks for.

    A server that asks for one at any other statement gets an empty one, and an error is raised: no file of this
    machine leaves it.
    """

    file: File | None = None

    def _read_query_result(self, unbuffered: bool = False) -> int:
        del unbuffered
        self._result: Any = None
        result = _Result(self)
        result.read()
        self._result = result
        if result.server_status is not None:
            self.server_status = result.server_status
        return int(result.affected_rows or 0)


class _Result(MySQLResult):
    def _read_load_local_packet(self, first_packet: Any) -> None:
        connection: Any = self.connection
        asked = bytes(first_packet.get_all_data()[1:])  # the name that the server asks for
        file = connection.file
        try:
            while file is not None and (block := file.read(_PACKET)):
                for at in range(0, len(block), _LARGEST):
                    connection.write_packet(block[at : at + _LARGEST])
        finally:
            if connection.open:  # else the connection was lost: that error is the one to raise
                connection.write_packet(b"")
                answer = connection._read_packet()
        if file is None:
            raise OperationalError(2000, f"the server asks for the file {asked!r}, which no statement reads")
        self._read_ok_packet(answer)  # type: ignore[attr-defined]
