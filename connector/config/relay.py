"""The section `relay`: the folder to which the applier writes what it is about to apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from connector.config.section import Bytes, Section


class Relay(Section):
    """The relay: what is about to be applied, on this machine's disk, in THL's files. Needs master local[N]."""

    dir: Path | None = Field(
        None,
        description="Folder of the relay; none: there is no relay. Every commit on the target waits until its events "
        "are on the disk here. With `target.writers` above 1 a target whose applier died between the parts of a commit "
        "can then be made consistent without Kafka. A folder that other users can write to is refused; each applier "
        "needs its own.",
    )
    max_file_bytes: Bytes = Field(
        10_485_760, description="Bytes from which on the next event begins another file; an event is never divided."
    )
    retention: float = Field(
        0.0,
        ge=0,
        allow_inf_nan=False,
        description="Seconds for which files are kept after their last write, though the target has committed all of "
        "their events; 0: they are deleted at once. The newest file always stays.",
    )

    @field_validator("dir", mode="before")
    @classmethod
    def _none_if_empty(cls, given: Any) -> Any:
        return None if given == "" else given
