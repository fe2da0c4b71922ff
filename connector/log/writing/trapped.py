"""Checks that the source still has the log's transactions, unchanged.

There are two ways to lose them. Another server took the source's place without the last transactions: they are
*trapped* in the log. Or the source crashed with `sync_binlog≠1`, lost its last transactions and gave their GTIDs to
others.
"""

from __future__ import annotations

from collections.abc import Mapping

from connector.errors import HistoriesDiffer
from connector.log.epochs.control import EpochRecord
from connector.log.gtid.source_gtids import lacking
from connector.log.rules import NEW_LOG
from connector.log.transaction.position import Digest, Finished, PositionRecord, SourcePosition
from connector.log.transaction.source_position import file_number


def check_source(
    position: PositionRecord,
    last: EpochRecord,
    *,
    server_uuid: str,
    executed: str | None,
    unlogged: str | None = None,
    files: Mapping[str, int] | None = None,
) -> None:
    """Check that the source has every transaction that the log has.

    Args:
        position: the log's.
        last: the newest epoch, for its source.
        server_uuid, executed: the source as it is now; `executed` is its `gtid_executed` (of a MariaDB
            `gtid_binlog_state`), None without GTIDs.
        unlogged: the last GTIDs that it replicated without writing them to its log; None: there are none.
        files: the source's binary logs and their sizes; None: not looked at.

    Raises:
        HistoriesDiffer: some are trapped (`trapped` lists them), or there are no GTIDs to tell.
    """
    if files is not None and position.server_uuid == server_uuid:
        _check_files(position.resume, files)
    if position.gtid_set is None:
        if server_uuid != last.server_uuid:
            raise HistoriesDiffer(
                "The source is another server, and without GTIDs its positions say nothing about this log",
                hint=f"go back to the server that the log was read from, or {NEW_LOG}",
                server_uuid=server_uuid,
                expected=last.server_uuid,
            )
        return
    if executed is None:
        raise HistoriesDiffer(
            "The log follows GTIDs, but the source has none",
            hint="SET GLOBAL gtid_mode = ON_PERMISSIVE; until the producer has gone past what was written meanwhile, "
            "then ON",
        )
    missing = lacking(position.gtid_set, executed)
    if missing:
        raise HistoriesDiffer(
            f"The source lacks {missing.count()} transactions that are in the log",
            hint="`thl trapped` lists them; make a server the source that has them, or go on without them "
            "(thl produce --accept-trapped); before that `thl undo --to-seqno N` takes back targets that have applied "
            "them (docs/runbooks.md), else they must be filled again",
            trapped=str(missing),
            server_uuid=server_uuid,
        )
    if unlogged is not None and (never := lacking(unlogged, position.gtid_set)):
        raise HistoriesDiffer(
            "The source took transactions from another server without logging them, and the log does not have them",
            hint=f"start the server with log_slave_updates = ON, and {NEW_LOG}",
            unlogged=str(never),
            server_uuid=server_uuid,
        )


def _check_files(resume: SourcePosition, files: Mapping[str, int]) -> None:
    """Check that the server did not lose the end of its log that the producer has read.

    A binary log is cut only at its end, by a crash, and the server then goes on in the next file. Unlike the digest of
    the last event, this also shows the loss of a transaction that is not captured.
    """
    size = files.get(resume.file)
    purged = size is None and any(file_number(file) > file_number(resume.file) for file in files)
    if purged or (size is not None and size >= resume.offset):
        return
    raise HistoriesDiffer(
        "The source lost the end of a binary log that was already read",
        hint=f"it crashed with sync_binlog other than 1, or its log was reset: {NEW_LOG}",
        file=resume.file,
        size="no such file" if size is None else size,
        read_up_to=resume.offset,
    )


def check_redo(finished: Finished, redone: Finished | Digest | None, *, same_server: bool = False) -> None:
    """Check that the source shows the log's last transaction as it was.

    Args:
        finished: the last transaction, from the position.
        redone: the first transaction that the source gave from `finished.start` or before `finished.gtid`; None when
            it gave none.
        same_server: the source is the server that the epoch of `finished` read. Then the transaction must also stand
            where it stood: a server that crashed and lost the end of its log goes on in a new file, so even equal
            contents under an equal GTID show what happened.

    Raises:
        HistoriesDiffer: it is not there, or another one.
    """
    digest = redone.digest if isinstance(redone, Finished) else redone
    same = digest == finished.digest
    if isinstance(redone, Finished):
        same = same and redone.gtid == finished.gtid
        if same_server or finished.gtid is None:
            same = same and (redone.event_id, redone.start) == (finished.event_id, finished.start)
    if same:
        return
    raise HistoriesDiffer(
        "The source has another transaction where the log's last one was",
        hint=f"the source lost the end of its log (sync_binlog is not 1?): {NEW_LOG}",
        seqno=finished.seqno,
        gtid=finished.gtid,
        event_id=finished.event_id,
        logged=finished.digest,
        found=redone or "nothing",
    )
