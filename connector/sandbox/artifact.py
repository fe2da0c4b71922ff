"""The coordinates of something in a Maven repository."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Artifact:
    """One pinned artifact: group, name, version; of a module that has several, which: classifier and extension."""

    group: str
    name: str
    version: str
    classifier: str = ""
    extension: str = "jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"
