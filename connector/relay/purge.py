"""Deletes events of a relay at its beginning or its end, so that none is missing between two others."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Self

from connector.clock import Clock
from connector.errors import ConfigError
from connector.log.ids import Seqno
from connector.log.transaction.position import Intent
from connector.relay.folder import Lock, RelayFile, check_private, sync_folder, unusable
from connector.relay.reader import RelayReader, WholeEvent


@dataclass(frozen=True, slots=True)
class Deletion:
    """Deletes a file, or its end.

    Args:
        file: the file.
        first, last: the events that are deleted.
        at: the offset from which on the file is cut; None: it is deleted.
    """

    file: RelayFile
    first: Seqno
    last: Seqno
    at: int | None

    @property
    def text(self) -> str:
        """The deletion in words."""
        kept = "" if self.at is None else f" from byte {self.at} on"
        return f"{self.file.name}{kept}: events {self.first}..{self.last}"


class Purge:
    """Deletes events of a folder that no applier writes to meanwhile.

    Args:
        folder: the relay.
        clock: the clock of the lock.

    Raises:
        ConfigError: another process has the folder, other users can write to it, or it has no relay.
        LogDamaged: the first record of a file is damaged.
    """

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        check_private(folder)
        RelayReader(folder)  # a lock is not put into any other folder
        self._lock = Lock(folder, clock)
        self._relay = RelayReader(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.close()

    def deletions(self, low: Seqno | None, high: Seqno | None, needed: Intent | None) -> list[Deletion]:
        """Return what would be deleted, in the order in which an interruption leaves no gap.

        Deletions at the beginning are whole files, and leave the newest one. Deletions at the end cut or delete files:
        all of them where `low` is the oldest event or before it.

        Args:
            low: the first event to delete; None: the oldest.
            high: the last one; None: the newest.
            needed: the target's intent, whose events stay; None if there is none.

        Raises:
            ConfigError: an event is needed, or events would be missing between others.
        """
        newest = self._relay.newest
        if low is not None and high is not None and low > self._relay.oldest and high < newest:
            raise ConfigError(
                "events would be missing between others",
                hint="delete at the beginning (--to-seqno alone) or at the end (--from-seqno alone)",
                oldest=self._relay.oldest,
                newest=newest,
            )
        if low is not None and (high is None or low > self._relay.oldest):
            found = self._at_the_end(low, newest)
        else:
            found = self._at_the_beginning(newest if high is None else high)
        if needed is not None and any(one.first <= needed.last and needed.first <= one.last for one in found):
            raise ConfigError(
                "the target needs these events: it is within a commit of several writers",
                hint="start thl apply once, which finishes it",
                needed=needed.span,
            )
        return found

    def delete(self, deletions: list[Deletion]) -> None:
        """Do them, in their order.

        Raises:
            ConfigError: the folder refuses it.
        """
        try:
            for one in deletions:
                if one.at is None:
                    one.file.path.unlink()
                else:
                    os.truncate(one.file.path, one.at)
            sync_folder(self._folder)
        except OSError as error:
            raise unusable(self._folder, error) from error

    def _at_the_beginning(self, high: Seqno) -> list[Deletion]:
        files = self._relay.files
        return [
            Deletion(file, file.first, following.head.seqno, None)
            for file, following in pairwise(files)
            if following.head.seqno <= high
        ]

    def _at_the_end(self, low: Seqno, newest: Seqno) -> list[Deletion]:
        found: list[Deletion] = []
        last = newest
        for file in reversed(self._relay.files):
            if low > file.first:
                events = (one for one in self._relay.of_file(file) if isinstance(one, WholeEvent))
                at = next((event.begin for event in events if event.last.seqno >= low), None)
                return found if at is None else [*found, Deletion(file, low, last, at)]
            found.append(Deletion(file, file.first, last, None))
            last = file.head.seqno
        return found
