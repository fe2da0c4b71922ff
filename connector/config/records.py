"""The section `source.records`: the store that completes partial row images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from connector.config.section import Bytes, Section, TableGlob


class RecordStore(Section):
    """The record store: whole rows on a local disk, which complete partial row images before they are published."""

    dir: Path | None = Field(
        None,
        description="Folder of the record store, for this service alone; none: images are published as the source "
        "logs them. With it, row events of tables with a primary key have all columns, also with `binlog_row_image` "
        "MINIMAL or NOBLOB. It holds what is published, and needs about as much room as the published rows. A folder "
        "that other users can write to is refused.",
    )
    horizon: int = Field(
        1_000_000,
        ge=100_000,
        description="Events behind the newest one whose replaced row versions are kept, so that the store can go back.",
    )
    cache_bytes: Bytes = Field(
        128 << 20, description="Memory for rows that were used last, and as much again for blocks of the disk."
    )
    partial: tuple[TableGlob, ...] = Field(
        (),
        description="Patterns of tables whose images may stay partial where the store does not know the row, or the "
        "table has no key; in other tables that stops the producer.",
    )

    @field_validator("dir", mode="before")
    @classmethod
    def _none_if_empty(cls, given: Any) -> Any:
        return None if given == "" else given
