"""The rules of the log that readers check. An error names the rule that is broken in its field `rule`.

docs/internals/log.md lists them; a test keeps the list and this module equal.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final, TypeVar

from connector.errors import ConnectorError, LogDamaged

NEW_LOG: Final = "begin a new log (another `service`)"
"""The remedy where the log lacks something that no later event brings, for hints."""

E = TypeVar("E", bound=ConnectorError)


class Rule(StrEnum):
    """A broken rule: its name in errors, and the sentence that the error begins with."""

    message: str

    def __new__(cls, value: str, message: str) -> Rule:
        """Create a member from its name and sentence."""
        rule = str.__new__(cls, value)
        rule._value_ = value
        rule.message = message
        return rule

    # The order of fragments in a partition.
    OFFSET_REREAD = "offset_reread", "The partition was read again from an earlier offset"
    EVENT_MISSING = "event_missing", "Events are missing before this one"
    EVENT_TWICE = "event_twice", "The log has an event twice"
    EVENT_UNFINISHED = "event_unfinished", "The event before this one is not finished"
    END_MISSING = "end_missing", "The last fragment of a finished event is missing"
    FRAGMENT_MISSING = "fragment_missing", "A fragment is missing before this one"
    LATER_EVENT_NAMED = "later_event_named", "The event names a later event as one before it"
    PREVIOUS_CHANGED = "previous_changed", "The fragments of an event name different previous events"
    ROWS_DECREASED = "rows_decreased", "A fragment counts fewer rows than an earlier one of its event"

    # Epochs.
    OLDER_PRODUCER = "older_producer", "An older producer wrote after a newer epoch had begun here"
    MARKER_MISSING = "marker_missing", "The marker of the event's epoch is missing"
    EPOCH_MISSING = "epoch_missing", "An epoch is missing or came late"
    EPOCH_DECREASED = "epoch_decreased", "The event before this one is of a newer epoch"
    EPOCH_BEGIN_CHANGED = "epoch_begin_changed", "The marker contradicts what was read of its epoch's first event"
    BEFORE_EPOCH = "before_epoch", "The event is before the first one of its epoch"
    GIVEN_AGAIN = "given_again", "A newer epoch gives an event again that was finished"
    FINISHED_LATE = "finished_late", "An event is finished that a newer epoch gives again"

    # Barriers.
    BARRIER_MISSING = "barrier_missing", "A barrier is missing before this event"
    BARRIER_NOT_NAMED = "barrier_not_named", "The event does not name the last barrier before it"
    BARRIER_ELSEWHERE = "barrier_elsewhere", "A barrier is outside partition 0, where readers of one shard miss it"

    # The log's identity and its forks.
    OTHER_LOG = "other_log", "The log was deleted or re-created: the topic has another log than the one that was read"
    TRAPPED_APPLIED = "trapped_applied", "The source's successor lacks events that were already applied"
    FORK_WITHIN_LOAD = (
        "fork_within_load",
        ("The initial load is not finished, and the source lacks transactions that are in the log"),
    )
    FORK_OF_ANOTHER_SERVER = (
        "fork_of_another_server",
        ("The source has none of the log's transactions: it is another server"),
    )
    FORK_WITHOUT_PREPARE = (
        "fork_without_prepare",
        ("An XA transaction is prepared in the log, and the source lacks its XA PREPARE"),
    )
    FORK_WITHOUT_COMMIT = (
        "fork_without_commit",
        ("An XA transaction is committed in the log, and on the source it is prepared still"),
    )

    # The bytes of a message or record.
    NOT_A_FRAGMENT = "not_a_fragment", "A message of the event topic is not a fragment"
    OTHER_SCHEMA = "other_schema", "A message is written with a schema that this version does not know"
    KIND_OF_ANOTHER_SCHEMA = "kind_of_another_schema", "A message is of a kind that its schema does not have"
    WRONG_CHECKSUM = "wrong_checksum", "The checksum of a fragment is wrong"
    UNDECODABLE = "undecodable", "A message or record of the log cannot be decoded"
    NUMBER = "number", "A number is too long, too large or cut off"
    NOT_UTF8 = "not_utf8", "Text of an event is not UTF-8"
    ROW_PARTS = "row_parts", "The parts of a large change do not follow each other"

    # Row changes.
    ROW_COUNT = "row_count", "An event has another number of rows than its header counts"
    KEY_EXISTS = "key_exists", "A row is inserted under a key that exists"
    KEY_DELETED = "key_deleted", "A row is changed under a key that was deleted"
    IMAGE_KIND = "image_kind", "A row image is there that its action does not have, or is missing"
    IMAGE_COLUMNS = "image_columns", "A row change does not say of every column whether its images have it"
    IMAGE_VALUES = "image_values", "A row image has another number of values than its table has columns"


class BrokenRule(ValueError):
    """Raised for bytes that break a rule, where the message's place is not known. `damaged` adds the place.

    Args:
        rule: the broken rule.
        where: ids beside those of the message.
    """

    def __init__(self, rule: Rule, **where: object) -> None:
        super().__init__(rule.message)
        self.rule = rule
        self.where = where


def broken(error: type[E], rule: Rule, *, hint: str = "", **where: Any) -> E:
    """Return the error of a broken rule.

    Args:
        error: its class.
        rule: the broken rule.
        hint: the remedy.
        where: ids of the place.
    """
    return error(rule.message, hint=hint, rule=rule, **where)


def damaged(cause: Exception, *, hint: str = "", **where: Any) -> LogDamaged:
    """Return the error of bytes that could not be read; it names the rule of a `BrokenRule`, else UNDECODABLE.

    Args:
        cause: raised while they were read.
        hint: the remedy.
        where: ids of the place.
    """
    if isinstance(cause, BrokenRule):
        return broken(LogDamaged, cause.rule, hint=hint, **{**where, **cause.where})
    return LogDamaged(f"{Rule.UNDECODABLE.message}: {cause}", hint=hint, rule=Rule.UNDECODABLE, **where)
