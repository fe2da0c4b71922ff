"""Prints fragments of the log as text, SQL, JSON or Avro."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, tzinfo
from enum import StrEnum
from typing import BinaryIO, Protocol

from connector.inspect.formats.avro_container import Container
from connector.inspect.formats.json_fragment import as_object
from connector.inspect.formats.sql_fragments import StatementPrinter
from connector.inspect.formats.tungsten import SIZES_HEAD, header_line, lines, named, sizes_line
from connector.inspect.formats.tungsten_specs import specs
from connector.inspect.formats.tungsten_values import value_formatter
from connector.inspect.thl_events.decoding import body_of
from connector.inspect.thl_events.log import Listed
from connector.patterns import NO_COLUMNS, ColumnPatterns


class Layout(StrEnum):
    """The format of the output."""

    TUNGSTEN = "tungsten"
    SQL = "sql"
    JSON = "json"
    AVRO = "avro"


class FragmentPart(StrEnum):
    """The printed part of a fragment."""

    ALL = "all"
    HEADERS = "headers"
    SIZES = "sizes"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The options of the output.

    Args:
        layout: Tungsten's text, SQL, a JSON object per line, or an Avro container file.
        part: all; or a part, of Tungsten's layout any, of JSON the headers.
        specs: show columns with their types.
        zone: time zone of commit times.
        charset: of Tungsten's layout: shows bytes as text of this character set.
        hexadecimal: of Tungsten's layout: shows the bytes of texts, too; of SQL: texts in hexadecimal.
        excluded_columns: of SQL: columns that it does not set.
    """

    layout: Layout = Layout.TUNGSTEN
    part: FragmentPart = FragmentPart.ALL
    specs: bool = False
    zone: tzinfo = UTC
    charset: str | None = None
    hexadecimal: bool = False
    excluded_columns: ColumnPatterns = NO_COLUMNS


class LogPrinter(Protocol):
    """Writes fragments."""

    def show(self, listed: Listed) -> None:
        """Write one."""

    def flush(self) -> None:
        """Flush the output."""


def log_printer(view: View, out: BinaryIO) -> LogPrinter:
    """The printer for the options."""
    if view.layout is Layout.AVRO:
        return AvroPrinter(out)
    if view.layout is Layout.SQL:
        return StatementPrinter(out, view.excluded_columns.find, hexadecimal=view.hexadecimal)
    if view.layout is Layout.JSON:
        headers = view.part is FragmentPart.HEADERS
        return TextPrinter(
            out,
            lambda listed: iter(
                [json.dumps(as_object(listed, headers=headers, specs=view.specs, zone=view.zone), ensure_ascii=False)]
            ),
        )
    head, value = specs if view.specs else named, value_formatter(view.charset, hexadecimal=view.hexadecimal)
    texts: dict[FragmentPart, Callable[[Listed], Iterator[str]]] = {
        FragmentPart.ALL: lambda listed: lines(listed, zone=view.zone, column_head=head, value=value),
        FragmentPart.HEADERS: lambda listed: iter([header_line(listed, zone=view.zone)]),
        FragmentPart.SIZES: lambda listed: iter([sizes_line(listed, zone=view.zone)]),
    }
    return TextPrinter(out, texts[view.part], SIZES_HEAD if view.part is FragmentPart.SIZES else "")


class TextPrinter:
    """Writes lines.

    Args:
        out: receives UTF-8.
        text: returns a fragment's lines.
        head: a first line.
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
        """Flush the output."""
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
        """End the block, and flush the output."""
        self._container.flush()
        self._out.flush()
