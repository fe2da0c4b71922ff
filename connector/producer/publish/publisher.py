"""The thread that writes queued work in Kafka transactions, each with the producer's position.

1. Poll work; if replicas must have it first, wait for them without an open transaction. 2. Begin a transaction if none
is open, and send the work's fragments; the position in memory moves with each. 3. When `Pacing` decides, send the
position in the same transaction and commit. 4. Only then acknowledge it to the source, if that waits, and update the
metrics.
A crash before step 3 leaves nothing visible; after it, the next start reads the position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Event, Thread
from typing import Final

from connector import metrics
from connector.clock import Clock
from connector.config.model import Config
from connector.health import ProcessHealth
from connector.kafka.records import control_message, definition_messages, position_message
from connector.kafka.transactions import Transactions
from connector.log.epochs.control import LogRecord, PartitionMap
from connector.log.epochs.loads import LoadRequest, TableLoad
from connector.log.transaction.batch import PositionAdvance
from connector.log.transaction.definition import Definitions, Redefined
from connector.log.transaction.pending import Stored
from connector.log.transaction.position import PositionRecord, SnapshotCompleted
from connector.log.writing.fragment import Fragment
from connector.log.writing.online import OnlinePlan
from connector.log.writing.progress import Progress
from connector.producer.publish.acknowledger import Acknowledger
from connector.producer.publish.fragments import gtids_of, rows_of, send_on
from connector.producer.publish.pacing import Pacing
from connector.producer.publish.queue import RowCounts, Work, WorkQueue
from connector.producer.publish.replica_gate import ReplicaGate

OBSERVED: Final = 32  # number of evenly spaced events per commit whose latencies are observed
READING: Final = "reading the source"  # the loop of the thread that puts work
PUBLISHING: Final = "publishing"
WAKE: Final = 0.2  # seconds between two checks of the timer while the queue is empty

Point = Callable[[str], None]


class Publisher:
    """Publishes one epoch, from a plan until `drain` or an error.

    `put` and `drain` raise the thread's error, or `ReplicaLagging` if it has dropped waiting transactions; then the
    object and its `Transactions` can only be closed.

    Args:
        config: topics and pacing.
        transactions: the opened transactional producer, without an open transaction.
        clock: the clock for pacing and latencies.
        point: called before and after every commit; see `connector.failpoints`.
        gate: the replicas that must have a transaction before it is published; None: none.
        created: returns the creation time of a file of the source's log, seconds since 1970 UTC; 0 if unknown.
        acknowledger: gets each committed position, also one that only filtered transactions have moved; None: the
            source does not wait.
        health: has the loops of both threads; None: nobody asks.
    """

    def __init__(
        self,
        config: Config,
        transactions: Transactions,
        clock: Clock,
        point: Point,
        gate: ReplicaGate | None = None,
        *,
        created: Callable[[str], int] = lambda file: 0,
        acknowledger: Acknowledger | None = None,
        health: ProcessHealth | None = None,
    ) -> None:
        health = health or ProcessHealth(clock)
        self._reading, self._publishing = health.loop(READING), health.loop(PUBLISHING)
        self._created = created
        self._acknowledger = acknowledger
        self._config = config
        self._transactions = transactions
        self._clock = clock
        self._point = point
        self._gate = gate
        self._hurried = Event()  # set: do not wait for replicas any more
        self._pacing = Pacing(config.publish.commit_bytes, config.publish.commit_ms)
        self._queue = WorkQueue(config.publish.queue_bytes)
        self._thread: Thread | None = None
        self._server_uuid = ""
        self._committed: PositionRecord | None = None
        self._progress: Progress | None = None
        self._moved = False
        self._written = clock.monotonic()
        self._newest_commit: int | None = None
        self._opened: float | None = None  # the time at which the open transaction began
        self._bytes = 0
        self._snapshot_ends = False  # the open transaction has the end of an initial load
        self._xa_stored = False  # the open transaction has records of prepared transactions
        self._ended: list[Fragment] = []
        self._changed: list[RowCounts] = []

    @property
    def committed(self) -> PositionRecord:
        """The position in Kafka."""
        if self._committed is None:
            raise RuntimeError("nothing is published before `online`")
        return self._committed

    @property
    def newest_commit(self) -> int | None:
        """Commit time of the newest event that this publisher has written, in µs; None: none yet."""
        return self._newest_commit

    def online(self, plan: OnlinePlan, markers: list[Fragment]) -> None:
        """Write a plan in one Kafka transaction, and start to publish.

        Args:
            plan: the epoch and its position.
            markers: the encoded EPOCH markers.

        Raises:
            ReplicaLagging: a stop was requested while replicas lacked transactions of the log.
        """
        if self._gate is not None and plan.position.gtid_set:
            self._gate.wait(plan.position.gtid_set, self._hurried.is_set)
        records: tuple[LogRecord | PartitionMap | None, ...] = (plan.log, plan.partitions)
        self._transactions.begin()
        for record in (*(known for known in records if known is not None), plan.epoch, *plan.loads):
            self._transactions.send(self._config.control_topic, 0, *control_message(record))
        if plan.tables is not None:
            self._define(plan.tables)
        for marker in markers:
            self._transactions.send(self._config.topic, marker.partition, marker.key, marker.value)
        self._transactions.send(self._config.position_topic, 0, *position_message(plan.position))
        self._point("produce.before_epoch_commit")
        self._transactions.commit()
        self._point("produce.after_epoch_commit")
        metrics.epoch.labels(self._config.service).set(plan.epoch.epoch)
        metrics.published_seqno.labels(self._config.service).set(plan.position.last_finished)
        self._committed, self._server_uuid = plan.position, plan.epoch.server_uuid
        self._acknowledge(plan.position)
        self.resume()

    def resume(self) -> None:
        """Continue to publish after `drain`, in the same epoch."""
        self._progress = Progress(self.committed, self._server_uuid)
        self._moved = False
        self._queue = WorkQueue(self._config.publish.queue_bytes)
        self._thread = Thread(target=self._run, name="publish", daemon=True)
        self._thread.start()

    def put(self, work: Work) -> None:
        """Queue work; waits while `queue_bytes` are queued. `[]` only checks for an error."""
        if work:
            with self._reading.waits():
                self._queue.put(work)
        else:
            self._queue.check()

    def drain(self, *, hurried: bool = False) -> PositionRecord:
        """Publish all queued work, write the position, and end the thread.

        Args:
            hurried: do not wait for replicas.

        Returns:
            The committed position.

        Raises:
            ReplicaLagging: transactions that waited for replicas were not published.
        """
        if hurried:
            self._hurried.set()
        self._end()
        self._queue.check()
        self._hurried.clear()
        return self.committed

    def confirm(self) -> None:
        """Check that no newer producer has taken over: see `Transactions.confirm`. Only after `drain`."""
        self._transactions.confirm()

    def end(self) -> None:
        """Drain without waiting for replicas; ignores errors. May be repeated."""
        self._hurried.set()
        self._end()

    def _end(self) -> None:
        self._queue.end()
        if self._thread is not None:
            with self._reading.waits():
                self._thread.join()
            self._thread = None

    def _run(self) -> None:
        try:
            with self._publishing.under_way():
                while not self._queue.finished:
                    self._publish_next()
                self._commit_position()
        except Exception as error:  # noqa: BLE001 - raised again in the thread that puts
            self._queue.fail(error)

    def _publish_next(self) -> None:
        self._publishing.turn()
        found = self._queue.poll(WAKE)
        if found is not None:
            self._wait(found[0])
            self._send(*found)
            if self._opened is not None and self._due(self._opened):
                self._commit()
            elif self._opened is None and self._acknowledger is not None and self._due(self._written):
                self._commit_position()  # a commit on the source may wait, although it is filtered
        if self._opened is None and self._idle_seconds() > self._config.publish.idle_position_seconds:
            self._commit_position()  # also while filtered transactions follow each other without a pause

    def _wait(self, work: Work) -> None:
        """Wait until the replicas have the transactions of this work."""
        gtids = gtids_of(work) if self._gate is not None else ""
        if self._gate is None or not gtids or self._gate.has(gtids):
            return
        if self._opened is not None:
            self._commit()
        with self._publishing.waits():
            self._gate.wait(gtids, self._hurried.is_set)

    def _due(self, opened: float) -> bool:
        return self._pacing.due(self._bytes, self._clock.monotonic() - opened, waiting=not self._queue.empty)

    def _idle_seconds(self) -> float:
        return self._clock.monotonic() - self._written

    def _commit_position(self) -> None:
        """Commit the position if filtered transactions have moved it, unless an event is open."""
        if self._opened is None and not self._moved:
            return
        if self._opened is None:
            self._begin()
        self._commit()

    def _send(self, work: Work, size: int) -> None:
        progress, at = self._moving(), 0
        while at < len(work):
            match work[at]:
                case Fragment():
                    if self._opened is None:
                        self._begin()
                    at = send_on(work, at, progress, self._transactions.send, self._config.topic, self._ended)
                    continue
                case PositionAdvance() as advance:
                    self._moved = progress.passed(advance) or self._moved
                case Stored() as stored:
                    if self._opened is None:
                        self._begin()
                    self._transactions.send(self._config.prepared_topic, 0, stored.key, stored.value)
                    if stored.kept is not None:
                        progress.keep(stored.kept)
                    self._xa_stored = True
                case RowCounts() as changes:
                    self._changed.append(changes)
                case SnapshotCompleted() as completed:
                    progress.snapshot_ended(completed.gtid_set)
                    self._snapshot_ends = self._moved = True
                case LoadRequest() | TableLoad() as load:
                    if self._opened is None:
                        self._begin()
                    self._transactions.send(self._config.control_topic, 0, *control_message(load))
                case Definitions() | Redefined() as tables:
                    if self._opened is None:
                        self._begin()
                    self._define(tables)
            at += 1
        self._bytes += size

    def _define(self, tables: Definitions | Redefined) -> None:
        for key, value in definition_messages(tables):
            self._transactions.send(self._config.control_topic, 0, key, value)

    def _begin(self) -> None:
        if pause := self._pacing.rest(self._idle_seconds()):
            self._clock.sleep(pause)
        self._transactions.begin()
        self._opened = self._clock.monotonic()

    def _commit(self) -> None:
        record = self._with_created(self._moving().record())
        points = self._failpoints(record)
        self._transactions.send(self._config.position_topic, 0, *position_message(record))
        self._point(f"{points}before_commit")
        started = self._clock.monotonic()
        self._transactions.commit()
        self._written = self._clock.monotonic()
        self._point(f"{points}after_commit")
        self._pacing.committed(self._written - started)
        self._committed = record
        if self._ended:
            self._newest_commit = self._ended[-1].commit_time
        self._acknowledge(record)
        self._count(self._written - started)
        self._opened, self._bytes, self._moved, self._snapshot_ends, self._xa_stored = None, 0, False, False, False
        self._ended.clear()
        self._changed.clear()

    def _acknowledge(self, position: PositionRecord) -> None:
        if self._acknowledger is not None:
            self._acknowledger.acknowledge(position)

    def _with_created(self, record: PositionRecord) -> PositionRecord:
        """Return the record with the creation time of its file; if that is unknown, with the last record's."""
        before = self.committed
        same = (before.resume.file, before.server_uuid) == (record.resume.file, record.server_uuid)
        return replace(record, created=self._created(record.resume.file) or (before.created if same else 0))

    def _failpoints(self, record: PositionRecord) -> str:
        """Return the common prefix of the names of this commit's two failpoints."""
        if self._snapshot_ends:
            return "produce.snapshot_end_"
        if record.snapshot:
            return "produce.snapshot_"
        if record.open:
            return "produce.mid_event_"
        return "produce.prepared_" if self._xa_stored else "produce."

    def _count(self, seconds: float) -> None:
        service = self._config.service
        metrics.kafka_commit.labels(service).observe(seconds)
        metrics.published_bytes.labels(service).inc(self._bytes)
        for changes in self._changed:
            for name, rows, size in changes.counts:
                metrics.published_tables.add(service, name.schema, name.table, rows, size)
        if not self._ended:
            return
        metrics.published_events.labels(service).inc(len(self._ended))
        metrics.published_seqno.labels(service).set(self._ended[-1].seqno)
        metrics.published_rows.labels(service).inc(rows_of(self._ended))
        now = self._clock.now()
        latency = metrics.published_latency.labels(service)
        # An observation costs as much as sending an event, so only some events are observed.
        observed = range(0, len(self._ended), 1 + len(self._ended) // OBSERVED)
        for index in observed:
            commit_time = self._ended[index].commit_time
            if commit_time is not None:
                latency.observe(max(0, now - commit_time) / 1e6)

    def _moving(self) -> Progress:
        if self._progress is None:
            raise RuntimeError("nothing is published before `online`")
        return self._progress
