"""Opens the record store when the producer goes online, and brings it to the log's last event.

The store never decides: Kafka's position does. A store that is ahead drops what the log has not, one that is behind
reads the log, and one of another log, of a history that the log has left, or with damaged files begins again: from the
log's events, as far as it still has them. What it then does not know is loaded (`thl load`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from threading import Event
from typing import Final

from connector.config.model import Config
from connector.errors import ConfigError, RecordsDamaged
from connector.log.epochs.control import ControlState, EpochRecord
from connector.log.epochs.history import History
from connector.log.ids import NO_EPOCH, NO_SEQNO, LogId, Seqno
from connector.producer.records.catch_up import first_event, read_events
from connector.producer.records.completion import EventCompleter
from connector.producer.records.filter_history import FilterHistory
from connector.producer.records.gauges import watch_records
from connector.records.database import OPTION, Database, remove
from connector.records.versions import StoreState, Versions

LOG: Final = logging.getLogger(__name__)


def open_completion(config: Config, control: ControlState, last: Seqno, stop: Event) -> EventCompleter | None:
    """Open the store of a configuration at the log's last event.

    Args:
        config: the configuration, with the topics' own settings.
        control: the log's control records.
        last: the log's last finished event.
        stop: set to stop the producer.

    Returns:
        None without a store.

    Raises:
        ConfigError: the folder cannot be used.
        DiskUnavailable: its disk is full or fails.
        BrokerUnavailable, LogDamaged: the log's events, as far as they are needed, cannot be read.
        Stopped: `stop` was set while they were read.
    """
    if config.source.records.dir is None or control.log is None:
        return None
    history = History.of(control, last)
    with ExitStack() as on_error:
        completion: EventCompleter | None = None
        try:
            completion = open_store(config, history.log_id, history.epochs)
            on_error.callback(completion.close)
            _go_to(config, completion, history)
            _follow(config, control, completion, last, stop)
        except RecordsDamaged as error:
            if completion is not None:
                completion.discard()
            completion = on_error.enter_context(closing(_again(config, history, error)))
            _follow(config, control, completion, last, stop)
        on_error.pop_all()
    return completion


def open_store(config: Config, log_id: LogId, epochs: Sequence[EpochRecord] = ()) -> EventCompleter:
    """Open a store as it is.

    Args:
        config: the service and its source; the folder of its records is created if it is missing.
        log_id: the log of a new store.
        epochs: the log's epochs; none: the store is not written.

    Raises:
        ConfigError: the folder is not named, or cannot be used.
        RecordsDamaged: the store cannot be read.
        DiskUnavailable: its disk is full or fails.
    """
    settings = config.source.records
    if settings.dir is None:
        raise ConfigError("there is no record store", hint=f"{OPTION} names its folder", option=OPTION)
    database = Database(settings.dir, cache_bytes=settings.cache_bytes)
    try:
        versions = Versions(database, log_id, horizon=settings.horizon, cache_bytes=settings.cache_bytes)
        return EventCompleter(versions, settings.partial, FilterHistory(epochs), config.source.filters, config.service)
    except BaseException:
        database.close()
        raise


def _go_to(config: Config, completion: EventCompleter, history: History) -> None:
    """Go back to the last event that store and log have in common.

    Raises:
        RecordsDamaged: the store is of another log, has to go back beyond its horizon, or lacks events that the log no
            longer has.
    """
    state = completion.versions.state
    planned = history.epochs[-1].epoch  # a store has events of it if it was planned before, as another fork, in vain
    unwritten = (Seqno(first - 1) for first, epoch in state.epochs if epoch >= planned)
    shared = min([last_shared(state, history), *unwritten])
    completion.go_back(shared)
    if shared < history.last_finished and (oldest := first_event(config, history)) > shared + 1:
        raise RecordsDamaged(
            "the record store lacks events that the log no longer has", seqno=shared + 1, oldest=oldest
        )


def rebuild(config: Config, control: ControlState, last: Seqno) -> EventCompleter:
    """Begin the store again, from the events that the log has.

    Raises:
        As `open_completion`.
    """
    history = History.of(control, last)
    with suppress(RecordsDamaged):  # a producer that has it open is found out before its files are deleted
        open_store(config, history.log_id).close()
    with ExitStack() as on_error:
        completion = on_error.enter_context(closing(_again(config, history, None)))
        _read(config, control, completion, last, Event())
        on_error.pop_all()
    return completion


def _follow(config: Config, control: ControlState, completion: EventCompleter, last: Seqno, stop: Event) -> None:
    """Bring a store to the log's last event, and under the filters of the newest epoch."""
    watch_records(config.service, completion.versions, last)
    _read(config, control, completion, last, stop)
    completion.enter(control.epochs[-1].epoch, Seqno(last + 1))


def _read(config: Config, control: ControlState, completion: EventCompleter, last: Seqno, stop: Event) -> None:
    count = read_events(config, control, completion, last, stop) if completion.versions.state.seqno < last else 0
    if count:
        fields = {"service": config.service, "events": count, "seqno": last}
        LOG.info("the record store has read events of the log", extra=fields)


def last_shared(state: StoreState, history: History) -> Seqno:
    """The last event that the store and the log have in common.

    Raises:
        RecordsDamaged: the store is of another log.
    """
    if state.log_id != history.log_id:
        raise RecordsDamaged(
            "the record store is of another log", log_id=history.log_id, found=state.log_id, seqno=state.seqno
        )
    seqno = min(state.seqno, history.last_finished)
    trapped = (one.first for one in history.trapped)
    begins = {*trapped, *(one.first_seqno for one in history.epochs), *(first for first, _ in state.epochs)}
    known = state.epochs[0][0] if state.epochs else Seqno(0)
    for begun in sorted(at for at in begins if known <= at <= seqno and at >= 0):
        # From there on it was given up and written again, or the log goes on without it.
        if state.epoch_of(begun) != history.epoch_without_trapped(begun):
            return Seqno(begun - 1)
    return seqno


def _again(config: Config, history: History, why: RecordsDamaged | None) -> EventCompleter:
    """Begin the store again at the first event that the log has."""
    settings = config.source.records
    if why is not None:
        LOG.warning(
            "the record store begins again, from the events that the log has",
            extra={"service": config.service, "why": why.located},
        )
    if settings.dir is not None and settings.dir.exists():
        remove(settings.dir)
    first = first_event(config, history) if history.last_finished > NO_SEQNO else Seqno(0)
    epoch = history.epoch_without_trapped(Seqno(first - 1)) if first else NO_EPOCH
    completion = open_store(config, history.log_id, history.epochs)
    if first:
        completion.versions.begin_at(first, epoch)
    return completion
