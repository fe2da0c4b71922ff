"""Describes the source's binary log files for `thl info --source`: how far producer and archive have read them.

Only names, sizes and variables are read, no events: a dump with the producer's server id would end the producer's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from connector.config.model import Config
from connector.errors import escaped
from connector.kafka.log_reader import LogReader
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.log.transaction.source_position import file_number
from connector.mysql.archive.archive import Archive
from connector.mysql.server.connection import Connection, query, session
from connector.mysql.server.source_facts import SourceFacts, read_facts
from connector.mysql.server.source_state import FIRST_EVENT, binary_logs, end_position

# Variables by which a server purges its binary log, beside the time for which it keeps a file.
PURGE: Final = ("binlog_expire_logs_auto_purge", "max_binlog_total_size", "binlog_space_limit")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of the source's binary log.

    Args:
        name, first, size: its name, its first position, and its size, which is the position after its last event.
        read_to: the position to which the producer's resumable position has come; None: not begun, or unknown.
        archived_to: the position to which the archive has it; None: not in the archive.
        archived_whole: the archive has the whole file.
    """

    name: str
    first: int
    size: int
    read_to: int | None
    archived_to: int | None
    archived_whole: bool


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The binary log of the source.

    Args:
        source_id, server_uuid: the server.
        end: the position after its last event.
        resume: the producer's resumable position; None: there is no log yet.
        of_server: the server whose file `resume` names; "" if it is this one, or unknown.
        archive: the folder of source.archive; None: there is none.
        archive_of: the server whose log the archive has; "" if it is this one, or unknown.
        archive_resume: the position after the archive's last byte; None: it is empty.
        files: the files, oldest first.
        expire_seconds: seconds after a file's last write when the server purges it; 0: never.
        limits: other variables that make the server purge, with their values.
    """

    source_id: str
    server_uuid: str
    end: SourcePosition
    resume: SourcePosition | None
    of_server: str
    archive: Path | None
    archive_of: str
    archive_resume: SourcePosition | None
    files: tuple[SourceFile, ...]
    expire_seconds: int
    limits: tuple[tuple[str, int], ...]

    @property
    def next_purged(self) -> SourceFile | None:
        """The file that the server purges next, the oldest; None: it has only one, which it never purges."""
        return self.files[0] if len(self.files) > 1 else None

    @property
    def needed(self) -> bool | None:
        """True if the producer or the archive has not read all of the file that is purged next; None: unknown."""
        file = self.next_purged
        if file is None:
            return False
        if self.resume is None or self.of_server:
            return None
        unread = file.read_to is None or file.read_to < file.size
        return unread or (self.archive is not None and not self.archive_of and not file.archived_whole)


def source_files(config: Config) -> SourceFiles:
    """Read the source's files, and compare them with the producer's position and the archive.

    Raises:
        SourceUnavailable, PreflightError: the source does not answer, or refuses.
        BrokerUnavailable, LogDamaged: the producer's position cannot be read.
        ConfigError: the archive cannot be read.
    """
    with LogReader(config) as log:
        position = log.position()
    archive = None if config.source.archive is None else Archive(config.source.archive)
    archived = {} if archive is None else archive.sizes()
    with session(config.source) as connection:
        facts = read_facts(connection)
        found, end, limits = binary_logs(connection), end_position(connection), _limits(connection)
    elsewhere = _elsewhere(position, facts)
    owner = archive.owner if archive is not None else None
    archive_of = owner if owner is not None and owner != facts.server_uuid else ""
    resume = position.resume if position is not None else None
    files = tuple(
        SourceFile(
            name,
            FIRST_EVENT,
            size,
            None if resume is None or elsewhere else _read_to(resume, name, size),
            *((None, False) if archive_of else archived.get(name, (None, False))),
        )
        for name, size in found
    )
    newest = max(archived, key=file_number, default=None)
    return SourceFiles(
        source_id=f"{config.source.host}:{config.source.port}",
        server_uuid=facts.server_uuid,
        end=end,
        resume=resume,
        of_server=elsewhere,
        archive=config.source.archive,
        archive_of=archive_of,
        archive_resume=None if newest is None else SourcePosition(newest, archived[newest][0]),
        files=files,
        expire_seconds=0 if ("binlog_expire_logs_auto_purge", 0) in limits else facts.expire_seconds,
        limits=tuple(limit for limit in limits if limit[1] > 0 and limit[0] != "binlog_expire_logs_auto_purge"),
    )


def as_object(found: SourceFiles) -> dict[str, object]:
    """The description for JSON."""
    return {
        "sourceId": found.source_id,
        "serverUuid": found.server_uuid,
        "end": str(found.end),
        "producer": None if found.resume is None else str(found.resume),
        "producerReadsServer": found.of_server or found.server_uuid,
        "archive": None if found.archive is None else str(found.archive),
        "archiveEnd": None if found.archive_resume is None else str(found.archive_resume),
        "archiveOfServer": None if found.archive is None else found.archive_of or found.server_uuid,
        "files": [
            {
                "file": one.name,
                "size": one.size,
                "first": one.first,
                "last": one.size,
                "readTo": one.read_to,
                "archivedTo": one.archived_to,
                "archivedWhole": one.archived_whole,
            }
            for one in found.files
        ],
        "nextPurged": None if found.next_purged is None else found.next_purged.name,
        "nextPurgedNeeded": found.needed,
        "expireSeconds": found.expire_seconds,
        "limits": dict(found.limits),
    }


def as_lines(found: SourceFiles) -> Iterator[str]:
    """The description as `name = value` lines."""
    yield f"source = {found.source_id}, server {found.server_uuid}, binary log ends at {escaped(str(found.end))}"
    if found.resume is None:
        yield "producer = has not begun a log"
    else:
        other = f" on server {found.of_server}, another one: it finds its place by GTIDs" if found.of_server else ""
        yield f"producer = resumes at {escaped(str(found.resume))}{other}"
    if found.archive is not None:
        end = "is empty" if found.archive_resume is None else f"ends at {escaped(str(found.archive_resume))}"
        other = f", of another server, {escaped(found.archive_of)}" if found.archive_of else ""
        yield f"archive = {escaped(str(found.archive))} {end}{other}"
    for one in found.files:
        facts = [f"{one.size} bytes", f"positions {one.first} to {one.size}"]
        if found.resume is not None and not found.of_server:
            facts.append(_progress("read by the producer", one.read_to, whole=one.read_to == one.size))
        if found.archive is not None and not found.archive_of:
            facts.append(_progress("archived", one.archived_to, whole=one.archived_whole))
        yield f"source file {escaped(one.name)} = {', '.join(facts)}"
    yield f"purged next = {_purge(found)}"


def _progress(done: str, to: int | None, *, whole: bool) -> str:
    if to is None:
        return f"not {done}"
    return done if whole else f"{done} up to {to}"


def _purge(found: SourceFiles) -> str:
    file = found.next_purged
    if file is None:
        return "nothing: the newest file stays"
    rules = [f"{found.expire_seconds} seconds after its last write"] if found.expire_seconds else []
    rules += [f"beyond {name} = {value}" for name, value in found.limits]
    needed = {
        True: "still to be read by the producer or the archive",
        False: "no longer needed",
        None: "it is not known if it is still needed",
    }[found.needed]
    return f"{escaped(file.name)}, {' or '.join(rules) or 'only by hand'}; {needed}"


def _limits(connection: Connection) -> tuple[tuple[str, int], ...]:
    names = ", ".join(f"'{name}'" for name in PURGE)
    rows = query(connection, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")
    words: dict[str, str] = {"ON": "1", "OFF": "0"}
    return tuple((row["Variable_name"], int(words.get(row["Value"], str(row["Value"])))) for row in rows)


def _elsewhere(position: PositionRecord | None, facts: SourceFacts) -> str:
    """The server whose files the producer's position names, if it is another one."""
    known = position.server_uuid if position is not None else ""
    return known if known and known != facts.server_uuid else ""


def _read_to(resume: SourcePosition, name: str, size: int) -> int | None:
    """The offset up to which a file is read; None: not begun, or of another base name: numbers are not comparable."""
    if name == resume.file:
        return resume.offset
    same_base = name.rpartition(".")[0] == resume.file.rpartition(".")[0]
    return size if same_base and file_number(name) < file_number(resume.file) else None
