"""The section `source.snapshot`: how the initial load reads the source."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from connector.config.section import Section, TableGlob

Connections = Annotated[int, Field(ge=1, le=64)]


class InitialLoad(Section):
    """How the initial load reads the source's tables."""

    connections: Connections = Field(
        4,
        description="Connections that read at the same time, all in the same consistent view. A small load uses fewer. "
        "`max_connections` of the source must allow them.",
    )
    chunk_rows: int = Field(
        200_000,
        ge=1,
        description="Approximate rows of a chunk: a range of the primary key that one connection reads. A table "
        "without a primary key is one chunk.",
    )
    max_rows_per_second: int | None = Field(
        None, ge=1, description="Most rows that the initial load publishes in a second; none: no limit."
    )
    first: tuple[TableGlob, ...] = Field(
        (),
        description="Patterns of tables (`schema.table`, with `*` and `?`) that are loaded first, in the order of the "
        "patterns; the other tables follow by name.",
    )
