"""Cuts a relay back to its target's position, from which its writer continues."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from connector.errors import ConfigError
from connector.log.epochs.fork import overlaps
from connector.log.epochs.history import History
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.position import TargetPosition
from connector.relay.folder import OPTION, Owner, RelayFile, damaged, gapless, later_paths, relay_files
from connector.relay.frames import Broken, file_head, frames
from connector.relay.reader import BUFFER, FileScan, TrappedEvents

LOG: Final = logging.getLogger(__name__)


class RelayEnd(NamedTuple):
    """The end of a relay.

    Args:
        files: its files.
        seqno, epoch: the last event before the next one to write.
        offset: where the last file ends with that event; None: the next event begins another file.
    """

    files: Sequence[RelayFile]
    seqno: Seqno
    epoch: Epoch
    offset: int | None = None


def cut_back(folder: Path, position: TargetPosition, history: History, *, owner: Owner, before: Owner) -> RelayEnd:
    """Cut off the events after a target's position, but for those of its intent.

    From the first event on that is not in the log's history, everything is cut off: the log has forked since.

    Args:
        folder: the relay.
        position: the position.
        history: the log's.
        owner: the target, and its claim that returned the position.
        before: those under which the relay was written last.

    Raises:
        ConfigError: the relay is of another log or target.
        LogDamaged: events are damaged that the target has applied.
        OSError: a file cannot be read, deleted or cut.
    """
    applied = position.seqno
    files = relay_files(folder, torn=True)
    _check_log(files, history.log_id, position.service)
    if files and (owner.token <= before.token or owner.is_other_than(before)):
        _check_target(files, position, owner, before)
    upto = applied if position.intent is None else position.intent.last
    if files and applied + 1 < gapless(files)[0].first:
        upto = applied
    upto = _last_of_history(files, history, applied, upto)
    while files and files[-1].head.seqno > upto:
        files.pop()
    _check_torn(folder, files, applied)
    for path in later_paths(folder, files[-1].number if files else 0):
        LOG.info("the relay has later events than the target: they are deleted", extra={"file": str(path)})
        path.unlink()
    end = RelayEnd(files, applied, position.epoch)
    if not files:
        return end
    last, epoch, offset = _cut(files[-1], upto, applied)
    if last < applied:
        fields = {"missing": f"{last + 1}..{applied}", "folder": str(folder)}
        LOG.warning("the relay lacks events: it was off when they were applied", extra=fields)
        return end
    return RelayEnd(files, last, epoch, offset)


def _check_log(files: Sequence[RelayFile], log_id: LogId, service: str) -> None:
    other = next((file for file in files if (file.head.log_id, file.head.service) != (log_id, service)), None)
    if other is not None:
        raise ConfigError(
            "the relay is of another log",
            hint=f"let {OPTION} name an empty folder",
            file=str(other.path),
            log_id=other.head.log_id,
            service=other.head.service,
            expected=f"{log_id} of service {service}",
        )


def _check_target(files: Sequence[RelayFile], position: TargetPosition, owner: Owner, before: Owner) -> None:
    """Refuse a relay that another target's applier wrote: that target may need what would be deleted here.

    The tokens of a target rise with each claim, so that a later claim of the same target has a larger one. Of two
    targets any may be the larger one; their identities differ, but a copy of a target has the same.
    """
    newest = _last_of(files[-1])
    other = owner.is_other_than(before)
    if newest == position.seqno and not other:
        return
    hint = f"let {OPTION} name another folder, or empty this one"
    if not other and files[0].first <= position.seqno < newest:
        hint += f"; a target that was set back goes on after thl purge --from-seqno {position.seqno + 1}"
    raise ConfigError(
        "the relay is of another target" + ("" if other else ", or of this one before it was set back"),
        hint=hint,
        folder=str(files[-1].path.parent),
        service=position.service,
        seqno=position.seqno,
        newest=newest,
        token=owner.token,
        relay_token=before.token,
    )


def _last_of_history(files: Sequence[RelayFile], history: History, applied: Seqno, upto: Seqno) -> Seqno:
    """Return the last event to keep.

    It is at most `upto`, before the first trapped event, and before the first event after `applied` whose epoch is not
    the one in the history. Only files that may have such events are read: a relay with retention may fill its disk.
    """
    trapped = history.trapped
    for at, file in enumerate(files):
        end = files[at + 1].head.seqno if at + 1 < len(files) else upto
        if end <= applied and not overlaps(trapped, file.first, end):
            continue
        with suppress(Broken), file.path.open("rb", buffering=BUFFER) as opened:
            for found in FileScan(file).events(opened):
                if isinstance(found, TrappedEvents):
                    continue
                seqno, epoch = found.last.seqno, found.last.epoch
                if seqno > upto:
                    break
                if overlaps(trapped, seqno, seqno) or (seqno > applied and history.covering(seqno).epoch != epoch):
                    fields = {"seqno": seqno, "epoch": epoch, "file": str(file.path)}
                    LOG.warning("the log goes on without events of the relay: they are deleted", extra=fields)
                    return Seqno(seqno - 1)
    return upto


def _check_torn(folder: Path, files: Sequence[RelayFile], applied: Seqno) -> None:
    """Refuse a last file without a first record if it may have had events that the target has applied."""
    for path in later_paths(folder, files[-1].number if files else 0):
        try:
            with path.open("rb") as opened:
                for frame in islice(frames(opened), 1):
                    file_head(frame)
        except Broken as error:
            if not files or _last_of(files[-1]) < applied:
                raise damaged(path, error) from error


def _cut(file: RelayFile, upto: Seqno, applied: Seqno) -> tuple[Seqno, Epoch, int]:
    """Cut off what follows an event in the last file, or is not whole.

    Args:
        file: the file.
        upto: the event.
        applied: the last event that the target has committed.

    Returns:
        The file's last event, its epoch, and the offset after it.
    """
    scan = FileScan(file)
    last, epoch, end = scan.seqno, scan.epoch, 0
    try:
        with file.path.open("rb", buffering=BUFFER) as opened:
            for _ in scan.events(opened):
                if scan.seqno > upto:
                    break
                last, epoch, end = scan.seqno, scan.epoch, scan.end
    except Broken as error:
        if last < applied:
            raise damaged(file.path, error, last, epoch) from error
    end = end or scan.begin
    if (size := file.path.stat().st_size) > end:
        fields = {"file": str(file.path), "last": last, "bytes": size - end}
        LOG.info("the relay is cut after the last event to keep", extra=fields)
        os.truncate(file.path, end)
    return last, epoch, end


def _last_of(file: RelayFile) -> Seqno:
    """Return the last whole event of a file before any damage; the one before the file if it has none."""
    scan = FileScan(file)
    with suppress(Broken), file.path.open("rb", buffering=BUFFER) as opened:
        for _ in scan.events(opened):
            pass
    return scan.seqno
