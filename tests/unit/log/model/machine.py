"""The protocol's model: everything that may happen, in any order, and what must hold whatever happens.

Its rules are what may happen next: the source executes, crashes or is replaced; a producer takes one step, is
killed, or is overtaken by another while it stands still and goes on later; markers of a Kafka transaction arrive in
one partition before another; topics are trimmed, cut or made anew; appliers read any partition by any amount, by
tasks that die or run twice, commit with one writer or several, die, and are overtaken between any two steps. Each run
has at most one kind of trouble beyond those, so that an error can be told from the one that the trouble explains.

Held after every step: promises 1 to 5 (docs/internals/promises.md), by an observer of every committed Kafka
transaction, of the targets, of the snapshots that readers get, and of what a semi-synchronous source told its clients.
Held whenever a producer goes online: promise 6; whenever an applier has nothing but its relay: promise 12. Held at the
end, when a producer and an applier are let run: either everything arrives, or somebody says with an error why it
cannot; nobody waits for ever, nobody skips.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from connector.errors import (
    BrokerUnavailable,
    ConnectorError,
    Fenced,
    HistoriesDiffer,
    LogDamaged,
    TargetUnavailable,
    Unsupported,
)
from connector.log import rules
from connector.log.format.shard_rule import BY_SCHEMA, BY_TABLE
from connector.log.ids import NO_SEQNO, Seqno
from tests.unit.log.model.simulation.acts import Act, Transactions, acts, transactions
from tests.unit.log.model.simulation.applier import Applier
from tests.unit.log.model.simulation.kafka import CONTROL, EVENTS, POSITION, PREPARED, Kafka
from tests.unit.log.model.simulation.producer import Producer, read_prepared
from tests.unit.log.model.simulation.relay import Relay
from tests.unit.log.model.simulation.scenario import Rule, rule
from tests.unit.log.model.simulation.source import Source
from tests.unit.log.model.simulation.target import Target
from tests.unit.log.model.simulation.truth import Truth

COMPACTED = (CONTROL, POSITION, PREPARED)
EXPLAINED: dict[str, dict[str, tuple[type[ConnectorError], ...]]] = {
    "none": {"producer": (), "applier": ()},
    "retention": {"producer": (), "applier": (LogDamaged, HistoriesDiffer)},
    "tail": {"producer": (LogDamaged,), "applier": (LogDamaged, HistoriesDiffer)},
    "hole": {"producer": (LogDamaged,), "applier": (LogDamaged, HistoriesDiffer)},
    "anew": {"producer": (LogDamaged,), "applier": (LogDamaged, HistoriesDiffer)},
    "rebuilt": {"producer": (), "applier": (LogDamaged, HistoriesDiffer)},
    "source crash": {"producer": (HistoriesDiffer,), "applier": ()},
    "failover": {"producer": (HistoriesDiffer,), "applier": ()},
    "fork": {"producer": (HistoriesDiffer, Unsupported), "applier": (HistoriesDiffer,)},
    "filters": {"producer": (), "applier": ()},
    "shards": {"producer": (), "applier": ()},
    "source lost": {"producer": (HistoriesDiffer,), "applier": ()},
    "writers": {"producer": (), "applier": ()},
    "relay": {"producer": (HistoriesDiffer, Unsupported), "applier": (HistoriesDiffer,)},
}
TROUBLES = tuple(EXPLAINED)
FORKS = ("fork", "relay")  # troubles in which a producer may go on without what its source lacks
DIVIDED = ("writers", "relay", "fork")  # troubles in which some appliers have several writers
FORKS_REFUSED = (
    rules.Rule.FORK_WITHOUT_PREPARE,
    rules.Rule.FORK_WITHOUT_COMMIT,
    rules.Rule.FORK_OF_ANOTHER_SERVER,
)


class TargetWaits(AssertionError):
    """Raised when an applier reads the log to its end without an error, and its target lacks events of it."""


class ProtocolModel:
    """One service: a source, a Kafka, up to two producers and two appliers at a time."""

    rules: tuple[Rule, ...]  # as they stand here
    one_transaction = True  # events and position
    keeps_in_one = True  # what is prepared, with the position
    takes_away_in_one = True  # what was, with its event
    confirms = True  # a producer, that it is not fenced, before it says that the log is damaged

    def __init__(self, trouble: str) -> None:
        self.trouble = trouble
        self.producers: list[Producer] = []
        self.appliers: list[Applier] = []
        self.target = Target()
        self.logs = 0
        self.relays = [Relay(), Relay()]  # of two hosts
        self.host = 0  # of the newest applier
        self.most_writers = 1
        self.waited = False  # the newest claim did, for writers of an older applier
        self.shards_by = BY_SCHEMA
        self.filters = 0  # +1 each time the configuration makes other events of the same transactions
        self.happened = False  # the trouble did
        self.lossy = ""  # the topic that loses tails
        self.refusal: ConnectorError | None = None  # of the newest producer that ended
        self.acts: dict[str, Callable[..., None]] = {
            "source": self.source_executes,
            "xa": self.source_prepares_and_decides,
            "producer": self.producer_goes_on,
            "applier": self.applier_goes_on,
            "broker": self.marker_arrives,
            "overtake": self.somebody_is_overtaken,
            "kill": self.somebody_is_killed,
            "operator": self.operator_starts_an_applier,
        }

    @rule(lambda rng: (rng.between(1, 4), rng.one_of((1, 1, 2, 3)), transactions(rng, rng.between(1, 8))))
    def begin(self, partitions: int, writers: int, transactions: Transactions) -> None:
        self.most_writers = max(writers, 2 if self.trouble in DIVIDED else 1)
        self.kafka = Kafka(partitions)
        self.source = Source()
        self.truth = Truth(self.kafka, self.source)
        self.kafka.on_commit = self.truth.committed
        self.source.on_told = self.truth.acknowledged
        self.source_executes(transactions)
        self.prepare()

    def prepare(self) -> None:
        """For those who break a rule of this simulation."""

    def explained(self, who: str, error: ConnectorError) -> bool:
        """Whether the run's trouble, having happened, may end in this error."""
        return self.happened and isinstance(error, EXPLAINED[self.trouble][who])

    @rule(lambda rng: (acts(rng),))
    def life_goes_on(self, acts: list[Act]) -> None:
        """Each does a little, in any order; each may be killed at any moment and is started again."""
        for who, *what in acts:
            self.acts[who](*what)

    def somebody_is_killed(self, who: str, which: int) -> None:
        if who == "producer" and self.producers:
            del self.producers[which % len(self.producers)]
        elif who == "applier" and self.appliers:
            self.end_applier(self.appliers[which % len(self.appliers)])

    def somebody_is_overtaken(self, who: str, which: int) -> None:
        """A second one starts beside the first."""
        if who == "producer" and len(self.producers) == 1:
            self.start_producer(every=1 + self.logs % 4, shard_limit=1 + self.logs % 5)
        elif who == "applier" and len(self.appliers) == 1:
            self.start_applier()

    # --- the source

    def source_executes(self, transactions: Transactions) -> None:
        for content, size, schema, filtered in transactions:
            self.source.execute(content, size, schema, filtered=filtered)

    def source_prepares_and_decides(self, steps: list[tuple[str, bool, tuple[int, int, str, bool]]]) -> None:
        """XA transactions: each is prepared, and with the next step of its xid committed or rolled back."""
        for xid, commits, (content, size, schema, filtered) in steps:
            self.source.xa(xid, content, size, schema, filtered=filtered, commits=commits)

    @rule(when=lambda self: any(not producer.stream_broke for producer in self.producers))
    def source_connection_breaks(self) -> None:
        for producer in self.producers:
            producer.stream_broke = True

    @rule(
        lambda rng: (rng.below(4), [rng.below(2) for _ in range(rng.below(4))]),
        trouble="source crash",
        when=lambda self: self.source.log,
    )
    def source_crashes(self, lost: int, content: list[int]) -> None:
        """It loses its last transactions, and may have executed others when it is met again."""
        self.happened = True
        self.source.crash(min(lost, len(self.source.log)))
        for one in content:
            self.source.execute(one, 1, "shop", filtered=False)
        self.source_connection_breaks()

    @rule(lambda rng: (rng.below(21),), trouble="failover", when=lambda self: self.source.log)
    def source_fails_over(self, lacking: int) -> None:
        """A replica takes its place, in which one transaction may be missing, the last or any other."""
        self.happened = True
        self.source.fail_over(lacking)
        self.source_connection_breaks()

    @rule(
        lambda rng: (
            rng.below(5),
            transactions(rng, rng.between(1, 2)),
            rng.random() < 0.5,
            rng.one_of((None, 2, 3, 4, 5)),
        ),
        trouble=FORKS,
        when=lambda self: self.source.log,
    )
    def source_fails_over_to_a_replica_that_lagged(
        self, lost: int, transactions: Transactions, applied: bool, steps: int | None
    ) -> None:
        """And whoever starts a producer says that the log may go on without what is lost.

        Mostly somebody has taken that already, which would be rare if it were left to chance.
        """
        if applied:
            self.producer_goes_on(0, 40)
            self.kafka.tell_all()
            self.applier_goes_on(0, [(number, 20) for number in range(len(self.kafka.topics[EVENTS]))], 100, steps)
        for applier in list(self.appliers) if steps else ():
            self.end_applier(applier)
        self.happened = True
        self.source.fail_over_lagging(min(lost, len(self.source.log)))
        self.source_executes(transactions)
        self.source_connection_breaks()

    @rule(lambda rng: (rng.below(9),), trouble="source lost", when=lambda self: not self.happened and self.source.log)
    def source_is_lost(self, lost: int) -> None:
        """It burns, disk and all; a replica takes its place that had not received its last transactions."""
        self.happened = True
        self.source.fail_over_lagging(min(lost, len(self.source.log)))
        self.source_connection_breaks()

    # --- producers

    @rule(trouble="filters")
    def filters_change(self) -> None:
        """Whoever starts next makes other events of the source's transactions."""
        self.filters += 1
        self.producers.clear()

    @rule(trouble="shards")
    def shards_are_made_by_another_rule(self) -> None:
        """Whoever starts next begins a version of the partition map."""
        self.shards_by = BY_TABLE if self.shards_by == BY_SCHEMA else BY_SCHEMA
        self.producers.clear()

    def start_producer(self, every: int, shard_limit: int) -> None:
        self.logs += 1
        log_id = f"{self.logs:032x}"
        producer = Producer(self.kafka, self.source, log_id=log_id, every=every, shard_limit=shard_limit)
        producer.one_transaction, producer.confirms = self.one_transaction, self.confirms
        producer.accepts = self.trouble in FORKS
        producer.filters, producer.shards_by = self.filters, self.shards_by
        producer.keeps_in_one, producer.takes_away_in_one = self.keeps_in_one, self.takes_away_in_one
        self.producers.append(producer)

    def producer_goes_on(self, which: int, steps: int) -> None:
        """For some steps; then it stands still, as under SIGSTOP, until it is its turn again."""
        if not self.producers:
            self.start_producer(every=1 + steps % 4, shard_limit=1 + steps % 5)
        producer = self.producers[which % len(self.producers)]
        for _ in range(steps):
            if not self.step(producer) or producer.idle:
                break

    def step(self, producer: Producer) -> bool:
        try:
            producer.step()
        except Fenced:
            assert producer is not self.newest_session(), "the newest producer is fenced"
        except BrokerUnavailable:
            self.kafka.tell_all()
        except ConnectorError as error:
            self.refusal = error
            if not self.explained("producer", error):
                raise
        else:
            return True
        self.producers.remove(producer)
        return False

    def newest_session(self) -> Producer | None:
        return next((p for p in self.producers if p.session == self.kafka.session), None)

    # --- Kafka

    def marker_arrives(self, which: int) -> None:
        self.kafka.tell_one(which)

    @rule(
        lambda rng: (rng.one_of(COMPACTED),),
        when=lambda self: any(len(self.kafka.partition(topic).entries) > 12 for topic in COMPACTED),
    )
    def topic_is_compacted(self, topic: str) -> None:
        self.kafka.compact(topic)

    @rule(lambda rng: (rng.below(4), rng.between(1, 30)), trouble="retention")
    def retention_deletes(self, number: int, count: int) -> None:
        number %= len(self.kafka.topics[EVENTS])
        self.happened = True
        self.kafka.delete_old(number, self.kafka.partition(EVENTS, number).start + count)

    @rule(
        lambda rng: (rng.one_of((EVENTS, EVENTS, *COMPACTED)), rng.below(4), rng.between(1, 9)),
        trouble="tail",
        when=lambda self: self.truth.events,
    )
    def partition_loses_its_tail(self, topic: str, number: int, count: int) -> None:
        """Of one topic: a log that lost the same transactions everywhere is an older log, and whole."""
        topic = self.lossy = self.lossy or topic
        if self.kafka.lose_tail(topic, number % len(self.kafka.topics[topic]), count):
            self.happened = True
            self.truth.looked_before = self.kafka.session

    @rule(
        lambda rng: (rng.below(4), rng.between(1, 9), transactions(rng, rng.between(1, 2))),
        trouble="hole",
        when=lambda self: any(self.truth.tails.values()) and self.newest_session(),
    )
    def tail_is_lost_under_a_producer_that_goes_on(self, number: int, count: int, transactions: Transactions) -> None:
        """It does not notice; where it writes to that partition again, there is a hole."""
        self.kafka.tell_all()
        if self.kafka.lose_tail(EVENTS, number % len(self.kafka.topics[EVENTS]), count):
            self.happened = True
            self.truth.looked_before = self.kafka.session
            self.source_executes(transactions)
            self.producer_goes_on(self.producers.index(self.newest_session()), 40)

    @rule(
        lambda rng: (rng.one_of(((EVENTS,), (CONTROL,), (POSITION,), (PREPARED,), (CONTROL, POSITION))),),
        trouble="anew",
        when=lambda self: not self.happened and self.truth.log_id,
    )
    def topics_are_made_anew(self, topics: tuple[str, ...]) -> None:
        """By somebody who ends the producers first."""
        self.happened = True
        self.producers.clear()
        self.kafka.init_transactions()
        for topic in topics:
            self.kafka.make_anew(topic)

    @rule(
        lambda rng: (transactions(rng, rng.between(10, 20)),),
        trouble="rebuilt",
        when=lambda self: not self.happened and self.target.rows,
    )
    def log_is_rebuilt(self, transactions: Transactions) -> None:
        """The source is filled again and its log begins again; the targets are left as they were."""
        self.topics_are_made_anew((EVENTS, CONTROL, POSITION, PREPARED))
        self.source.make_anew()
        self.source_executes(transactions)

    # --- appliers

    def start_applier(self, **options: Any) -> bool:
        """Start one, of another number of writers than the last; if it has to wait for an older one, nothing happens.

        It does not wait for ever: the server ends what is idle within a transaction.
        """
        writers = 1 + self.target.token % self.most_writers
        relay = None
        if self.trouble == "relay":
            if any(applier.relay is self.relays[self.host] for applier in self.appliers):
                self.host = 1 - self.host
            relay = self.relays[self.host]
        try:
            self.appliers.append(Applier(self.kafka, self.target, writers=writers, relay=relay, **options))
        except TargetUnavailable:
            if self.waited:
                self.target.end_idle()
            self.waited = not self.waited
            return False
        return True

    def end_applier(self, applier: Applier) -> None:
        applier.die()
        if applier in self.appliers:
            self.appliers.remove(applier)

    def applier_goes_on(self, which: int, reads: list[tuple[int, int]], commits: int, steps: int | None) -> None:
        """It reads, and commits the first few events that are complete, or takes some steps of that."""
        if not self.appliers and not self.start_applier():
            return
        applier = self.appliers[which % len(self.appliers)]

        def run() -> None:
            for number, most in reads if not applier.busy else ():
                if (partition := number % (len(self.kafka.topics[EVENTS]) + 1)) < len(self.kafka.topics[EVENTS]):
                    applier.read(partition, most)
                else:
                    applier.read_together(most)
            applier.commit(commits, steps)

        if self.guarded(applier, run) and applier.done:
            self.appliers[self.appliers.index(applier)] = applier.next()

    def operator_starts_an_applier(self, what: str, number: int) -> None:
        """With an event to leave out, which is still to come; or with one to begin at again; or one to go back to."""
        if len(self.appliers) > 1:
            return
        at = self.target.position
        if what == "skip":
            self.start_applier(skips={at.seqno + 1 + number % 3})
        elif what == "undo" and at.seqno > number:
            self.start_applier(undo=Seqno(at.seqno - 1 - number))
        elif what == "rewind" and at.seqno != NO_SEQNO:
            self.start_applier(first=Seqno(max(0, at.seqno - number)))

    @rule(
        lambda rng: (rng.between(1, 6), rng.between(1, 6), rng.random() < 0.7, rng.one_of((None, None, 0, 1))),
        when=lambda self: self.most_writers > 1 and self.truth.events,
    )
    def applier_stops_within_a_commit(self, most: int, steps: int, dies: bool, undone: int | None = None) -> None:
        """The newest one, perhaps one that has undone something first; it dies, or goes on later."""
        if undone is not None:
            self.operator_starts_an_applier("undo", undone)
        count = len(self.kafka.topics[EVENTS])
        reads = [(count, 7)] * 3 if most % 2 else [(number, 20) for number in range(count)]  # by tasks, or one by one
        self.applier_goes_on(-1, reads, most, steps)
        if dies and self.appliers:
            self.end_applier(self.appliers[-1])

    @rule(lambda rng: (rng.below(2),), when=lambda self: self.appliers)
    def somebody_reads_by_snapshot(self, which: int) -> None:
        """An applier exports what its target shows at any moment, whatever it or another one is doing."""
        applier = self.appliers[which % len(self.appliers)]
        seen = self.target.export(applier.token)
        if seen is not None and self.target.log_id == self.truth.log_id:
            assert seen == self.truth.whole(self.target), "a reader by snapshot sees a part of a commit"

    @rule(lambda rng: (rng.below(2),), when=lambda self: self.target.intent)
    def operator_changes_a_table(self, table: int) -> None:
        """So that it may not be divided any more, or may be."""
        self.target.undivided ^= {table}

    @rule(
        lambda rng: (
            rng.one_of((None, None, 0, 1)),
            rng.one_of((None, 0, 1, 2)),
            rng.one_of(("", "purge", "flip", "cut", "foreign", "other epoch")),
            rng.between(1, 4),
            rng.one_of((None, None, 1, 2, 3)),
        ),
        trouble="relay",
        when=lambda self: self.truth.events,
    )
    def brokers_are_gone(self, host: int | None, torn: int | None, harm: str, back: int, steps: int | None) -> None:
        """Within a commit every process ends, on a host its power, too; an applier there has nothing but the relay.

        Mostly on the host of the applier that began the commit.
        """
        if self.target.intent is None:
            self.producer_goes_on(0, 20)
            self.kafka.tell_all()
            self.applier_stops_within_a_commit(2 + back, 5 + back, dies=True)
        for applier in list(self.appliers):
            self.end_applier(applier)
        self.target.end_idle()
        target = self.target
        hosts = [number for number, one in enumerate(self.relays) if one is target.written_by]
        host = host if host is not None or not hosts else hosts[0]
        relay = self.relays[host or 0]
        if torn is not None:
            relay.lose_power(torn)
        if harm == "purge":
            harm = relay.delete(target.upto + 9, target.position)
        relay.damage(harm, back)
        applier = Applier(self.kafka, target, writers=back, relay=relay)
        before = list(target.rows), target.position, target.intent
        recovery = applier.from_relay(kafka_answers=False)
        try:
            while steps != 0 and next(recovery, None) is not None:
                self.check()
                steps = steps and steps - 1
        except (LogDamaged, HistoriesDiffer):
            assert harm or target.written_by is not relay, "the relay lacks what it is for"
            assert before == (target.rows, target.position, target.intent), "a target without its relay was changed"
        else:
            assert steps == 0 or target.intent is None, "the target is left within a commit"
        applier.die()
        if harm:
            relay.records.clear()  # `relay.dir` names another folder from now on
            target.written_by = None

    def guarded(self, applier: Applier, doing: Callable[[], Any]) -> bool:
        try:
            doing()
        except Fenced:
            assert applier.token != self.target.token, "the newest applier is fenced"
        except BrokerUnavailable:
            self.kafka.tell_all()
        except TargetUnavailable:
            pass
        except ConnectorError as error:
            no_log_yet = not self.truth.log_id
            if not no_log_yet and not self.explained("applier", error):
                raise
        else:
            return True
        self.end_applier(applier)
        return False

    # --- what holds

    def check(self) -> None:
        """After every step: the target is the log up to a seqno, and finished events are read once."""
        if self.target.rows and self.target.log_id == self.truth.log_id:
            self.truth.holds(self.target)
        if self.producers or self.appliers:
            self.truth.reads_once()

    def end(self) -> None:
        """Everything ends and is started again: all arrives, or an error says why not."""
        self.producers.clear()
        self.kafka.tell_all()
        self.start_producer(2, 3)
        producer = self.producers[0]
        while self.step(producer) and not producer.idle:
            pass
        self.kafka.tell_all()
        if producer.idle:
            self.truth.matches_source()
            assert self.truth.partitions.rule.by == self.shards_by, "shards are not made as they are to be"
            assert len(self.truth.live()) == len(self.source.published()), "the producer left something out"
            pending = {p.xid for p in read_prepared(self.kafka).pending}
            # A trapped XA ROLLBACK was only passed over: what it dropped is missed when the new source commits it.
            assert pending == set(self.source.prepared()) or (
                self.trouble in FORKS and pending < set(self.source.prepared())
            )
        elif self.trouble in FORKS:
            assert self.refusal is not None
            # The simulation's producer refuses an XA COMMIT whose XA PREPARE was trapped.
            never_prepared = isinstance(self.refusal, Unsupported) and "xid" in self.refusal.where
            may_refuse = self.refusal.where.get("rule") in FORKS_REFUSED or never_prepared
            assert may_refuse, f"what may be accepted is refused: {self.refusal}"
        refused = not producer.idle  # it says what is wrong; an applier that sees only the end of the log cannot
        old = self.target
        old.end_idle()
        for target in (old, Target()):
            self.target = target
            rows = list(target.rows)
            if self.applies_to_the_end():
                live = [event for event in self.truth.live() if event.seqno not in target.lacks]
                if not (refused or (target.rows == live and target.position.consistent)):
                    raise TargetWaits
                assert target.position.log_id == self.truth.log_id or not target.rows
                if self.trouble == "source lost":
                    self.holds_what_clients_saw(target)
            elif target.log_id != self.truth.log_id:
                assert target.rows == rows, "a target of another log was changed"
            elif self.trouble in FORKS:
                assert self.truth.is_misled(target), "a target that holds nothing trapped is refused"

    def holds_what_clients_saw(self, target: Target) -> None:
        there = {event.pieces[0][:2] for event in target.rows}
        there |= {event.pieces[0][:2] for event in self.truth.events if event.seqno in target.lacks}
        for transaction in self.source.told:
            if not transaction.filtered and transaction.does in ("commit all", "commit"):
                assert transaction.pieces[0][:2] in there, "what a client saw committed is lost with the source"

    def applies_to_the_end(self) -> bool:
        done = True
        while done:  # a commit of an earlier applier is made whole in an attempt of its own
            applier = Applier(self.kafka, self.target, writers=self.most_writers)
            if not self.guarded(applier, lambda applier=applier: self.reads_to_the_end(applier)):
                return False
            done = applier.done
        return True

    def reads_to_the_end(self, applier: Applier) -> None:
        numbers = range(len(self.kafka.topics[EVENTS]))
        while not applier.done and (applier.read_together(6) or sum([applier.read(number, 3) for number in numbers])):
            applier.commit()
        applier.commit()


ProtocolModel.rules = tuple(method.rule for method in vars(ProtocolModel).values() if hasattr(method, "rule"))
