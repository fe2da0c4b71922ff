"""Fragments of the log as text or Avro, in the layout that was asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from enum import StrEnum
from typing import BinaryIO, Protocol

from connector.inspect.events.decoding import body_of
from connector.inspect.events.log import Listed
from connector.inspect.formats.as_json import as_object
from connector.inspect.formats.container import Container
from connector.inspect.formats.specs import specs
from connector.inspect.formats.summaries import SIZES_HEAD, header_line, sizes_line, sql_lines
from connector.inspect.formats.tungsten import lines, named


class Layout(StrEnum):
    """How fragments are written."""

    TUNGSTEN = "tungsten"
    JSON = "json"
    AVRO = "avro"


class Part(StrEnum):
    """What of them is."""

    ALL = "all"
    HEADERS = "headers"
    SQL = "sql"
    SIZES = "sizes"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """How the log is shown.

    Args:
        layout: Tungsten's, a JSON object a line, or an Avro container file.
        part: all, or in Tungsten's layout a part; JSON knows all and headers, Avro all.
        specs: columns with their types.
        zone: of commit times.
    """

    layout: Layout = Layout.TUNGSTEN
    part: Part = Part.ALL
    specs: bool = False
    zone: tzinfo = UTC


class LogPrinter(Protocol):
    """Writes fragments, one after the other."""

    def show(self, listed: Listed) -> None:
        """Write one."""

    def flush(self) -> None:
        """Let the reader have what was written."""


def log_printer(view: View, out: BinaryIO) -> LogPrinter:
    """The one that writes what is wanted."""
    if view.layout is Layout.AVRO:
        return AvroPrinter(out)
    if view.layout is Layout.JSON:
        headers = view.part is Part.HEADERS
        return TextPrinter(
            out,
            lambda listed: iter(
                [json.dumps(as_object(listed, headers=headers, specs=view.specs, zone=view.zone), ensure_ascii=False)]
            ),
        )
    texts: dict[Part, Callable[[Listed], Iterator[str]]] = {
        Part.ALL: lambda listed: lines(listed, zone=view.zone, column_head=specs if view.specs else named),
        Part.HEADERS: lambda listed: iter([header_line(listed, zone=view.zone)]),
        Part.SQL: sql_lines,
        Part.SIZES: lambda listed: iter([sizes_line(listed, zone=view.zone)]),
    }
    return TextPrinter(out, texts[view.part], SIZES_HEAD if view.part is Part.SIZES else "")


class TextPrinter:
    """Writes lines.

    Args:
        out: where to, in UTF-8.
        text: a fragment's lines.
        head: a line before all.
    """

    def __init__(self, out: BinaryIO, text: Callable[[Listed], Iterator[str]], head: str = "") -> None:
        self._out = out
        self._text = text
        self._head = head

    def show(self, listed: Listed) -> None:
        """Write one."""
        if self._head:
            self._out.write(f"{self._head}\n".encode())
            self._head = ""
        self._out.write("".join(f"{line}\n" for line in self._text(listed)).encode())

    def flush(self) -> None:
        """Let the reader have it."""
        self._out.flush()


class AvroPrinter:
    """Writes an object container file."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._container = Container(out)

    def show(self, listed: Listed) -> None:
        """Write one."""
        self._container.add(body_of(listed.value, listed.place))

    def flush(self) -> None:
        """End the block."""
        self._container.flush()
        self._out.flush()
