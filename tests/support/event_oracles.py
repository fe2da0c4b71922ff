"""Header comments of `mysqlbinlog` and `mariadb-binlog`, and what `thl binlog --events` says of the same events."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

_EVENT = re.compile(
    r"^#(?P<time>\d{6} +\d+:\d\d:\d\d) server id (?P<server>\d+)  end_log_pos (?P<end>\d+)"
    r"(?: CRC32 0x(?P<crc>[0-9a-f]{8}))? *\t(?P<text>.*)"
)
# The first words of a type's comment.
WORDS = {
    "FORMAT_DESCRIPTION": "Start:", "QUERY": "Query", "STOP": "Stop", "ROTATE": "Rotate", "INTVAR": "Intvar",
    "RAND": "Rand", "USER_VAR": "User_var", "XID": "Xid", "BEGIN_LOAD_QUERY": "Begin_load_query:",
    "EXECUTE_LOAD_QUERY": "Execute_load_query", "APPEND_BLOCK": "Append_block:", "TABLE_MAP": "Table_map:",
    "ROWS_QUERY": "Rows_query", "WRITE_ROWS": "Write_rows:", "UPDATE_ROWS": "Update_rows:",
    "DELETE_ROWS": "Delete_rows:", "WRITE_ROWS_V1": "Write_rows:", "UPDATE_ROWS_V1": "Update_rows:",
    "DELETE_ROWS_V1": "Delete_rows:", "GTID": "GTID", "ANONYMOUS_GTID": "Anonymous_GTID", "GTID_TAGGED": "GTID",
    "PREVIOUS_GTIDS": "Previous-GTIDs", "XA_PREPARE": "XA", "TRANSACTION_PAYLOAD": "Transaction_Payload",
    "PARTIAL_UPDATE_ROWS": "Update_rows_partial:", "MARIADB_GTID": "GTID", "MARIADB_GTID_LIST": "Gtid",
    "MARIADB_BINLOG_CHECKPOINT": "Binlog", "MARIADB_ANNOTATE_ROWS": "Annotate_rows:",
    "MARIADB_QUERY_COMPRESSED": "Query_compressed", "MARIADB_WRITE_ROWS_COMPRESSED_V1": "Write_compressed_rows:",
    "MARIADB_UPDATE_ROWS_COMPRESSED_V1": "Update_compressed_rows:",
    "MARIADB_DELETE_ROWS_COMPRESSED_V1": "Delete_compressed_rows:",
}  # fmt: skip


class Comment(NamedTuple):
    """An event's header comment."""

    at: int
    timestamp: int
    server_id: int
    end: int
    crc: str | None
    word: str
    text: str


def comments(command: Sequence[str], file: Path, folder: Path) -> tuple[list[Comment], str]:
    """What a tool says of every event of a file, and the error with which it ends, if it does.

    It writes the files of LOAD DATA into the folder.
    """
    options = ["--no-defaults", "--base64-output=DECODE-ROWS", "-vv", f"--local-load={folder}"]
    told = subprocess.run(
        [*command, *options, str(file)], capture_output=True, check=False, env={**os.environ, "TZ": "UTC"}
    )
    found, at = [], 0
    for line in told.stdout.decode(errors="replace").splitlines():
        if line.startswith("# at "):
            at = int(line[5:])
        elif match := _EVENT.match(line):
            moment = datetime.strptime(f"{match['time']} +0000", "%y%m%d %H:%M:%S %z")
            text = match["text"].strip()
            word = text.split()[0] if text else ""
            moment_of = int(moment.timestamp())
            found.append(Comment(at, moment_of, int(match["server"]), int(match["end"]), match["crc"], word, text))
    return found, told.stderr.decode(errors="replace")


def check_events(
    events: list[dict[str, Any]], command: Sequence[str], file: Path, folder: Path
) -> tuple[list[dict[str, Any]], str]:
    """Check header and facts of the events of a file, as far as a tool can read it.

    Returns:
        The checked events, and the tool's error if it did not read all.
    """
    expected, refused = comments(command, file, folder)
    checked = events[: len(expected)] if refused else events
    ours = [_comparable(one) for one in said(checked)]
    assert ours == [_comparable(one) for one in expected], refused
    for event, comment in zip(checked, expected, strict=True):
        if "offset_in_payload" not in event:
            assert event["checksum"] == comment.crc
        facts, wanted = facts_of_event(event), facts_of_comment(comment.text)
        if "QUERY" in event["type"] and wanted.get("xid") == "0":
            del wanted["xid"]  # it has none
        assert {name: facts.get(name) for name in wanted} == wanted
    return checked, refused


def _comparable(comment: Comment) -> Comment:
    """MariaDB's tool shows an ANNOTATE_ROWS late, with the place of the event behind it, and calls XA_PREPARE XID."""
    word = "XA" if comment.word == "XID" else comment.word
    return comment._replace(crc=None, text="", word=word, at=0 if word == "Annotate_rows:" else comment.at)


def said(events: Iterable[dict[str, Any]]) -> list[Comment]:
    """The same of the events that `thl binlog --events --format json` prints.

    Events in a compressed transaction store no position; the tool shows the end of the compressed one.
    """
    found, end = [], 0
    for event in events:
        inside = "offset_in_payload" in event
        end = end if inside else event["next_position"]
        found.append(
            Comment(
                end if inside else event["position"],
                event["timestamp"],
                event["server_id"],
                end,
                None if inside else event["checksum"],
                WORDS[event["type"]],
                "",
            )
        )
    return found


def facts_of_comment(text: str) -> dict[str, str]:
    """The facts in a comment that our fields have, too."""
    found = dict(
        re.findall(r"\b(last_committed|sequence_number|transaction_length|thread_id|exec_time|error_code)=(\d+)", text)
    )
    patterns = {
        "xid": r"\b[Xx]id ?= ?(\d+)",
        "number": r"mapped to number (\d+)|table id (\d+)", "table": r"`(.+)`\.`(.+)` mapped",
        "next_file": r"Rotate to (\S+)", "gtid": r"^GTID (\d+-\d+-\d+)", "payload_size": r"payload_size=(\d+)",
        "uncompressed_size": r"uncompressed_size=(\d+)", "server_version": r"server v (\S+) created",
        "immediate": r"immediate_commit_timestamp=(\d+)", "original": r"original_committed_timestamp=(\d+)",
    }  # fmt: skip
    for name, pattern in patterns.items():
        if match := re.search(pattern, text):
            found[name] = ".".join(filter(None, match.groups()))
    return found


def facts_of_event(event: dict[str, Any]) -> dict[str, str]:
    """The same facts of an event."""
    fields = event["fields"]
    names = {
        "last_committed": "last_committed", "sequence_number": "sequence_number", "thread_id": "thread_id",
        "transaction_length": "transaction_length", "execution_seconds": "exec_time", "error_code": "error_code",
        "xid": "xid", "table_id": "number", "next_file": "next_file", "payload_size": "payload_size",
        "uncompressed_size": "uncompressed_size", "server_version": "server_version",
    }  # fmt: skip
    found = {to: str(fields[name]) for name, to in names.items() if name in fields}
    if event["type"] == "TABLE_MAP":
        found["table"] = f"{fields['schema']}.{fields['table']}"
    if event["type"] == "MARIADB_GTID":
        found["gtid"] = fields["gtid"]
    if "ddl_xid" in fields.get("variables", {}):
        found["xid"] = fields["variables"]["ddl_xid"]
    for name, to in (("immediate_commit_time", "immediate"), ("original_commit_time", "original")):
        if name in fields:
            moment = datetime.fromisoformat(fields[name])
            found[to] = str(round(moment.timestamp() * 1_000_000))
    return found
