"""Event ids: the position where an event ends in the source's log, as `mysql-bin.000002:0000000000002081;1748`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from connector.errors import LogDamaged

_FORM: Final = re.compile(r"(?P<file>[^:;]+):(?P<end>\d{16,20});(?P<thread>\d+)")


@dataclass(frozen=True, slots=True, order=True)
class EventId:
    """The end position of an event in the binary log, and the connection that executed it.

    Args:
        file: the binary log's file.
        end: the offset after the event's last byte; 16 digits in the text, so that texts of one file sort.
        thread_id: the connection's id on the server, 0 when unknown.
    """

    file: str
    end: int
    thread_id: int

    def __str__(self) -> str:
        return f"{self.file}:{self.end:016d};{self.thread_id}"

    @classmethod
    def parse(cls, text: str) -> EventId:
        """Read the text form.

        Raises:
            LogDamaged: the text is not an event id.
        """
        form = _FORM.fullmatch(text)
        if form is None:
            raise LogDamaged("An event id is not of the form file:0000000000000000;thread", event_id=text)
        return cls(form["file"], int(form["end"]), int(form["thread"]))
