"""Routes events: caches the partition, key and metadata of each shard's events. Compiled: every event reads its route."""

cimport cython

from connector.log.format import avro
from connector.log.format.shard import partition_of
from connector.log.ids import Kind, is_barrier

KEPT = 4096
# Tungsten's marks: of events without user data, and of events that end the transaction of the session that executes them.
MARK = {"is_metadata": "true"}
UNSAFE = {"unsafe_for_block_commit": ""}


@cython.final
cdef class Route:
    """The route of a shard's events.

    Args:
        server_id: the server that executes the events first.
        shard: the shard.
        partition, key: partition and key of the Kafka messages.
        bookkeeping: true for events that change only bookkeeping tables.
        definition: true for events with DDL.
        barrier: true if the events are barriers.
        facts: metadata of every such event of the shard and server.
        metadata: `facts` as an encoded Avro map.
    """


cdef class Routes:
    """Routes by server, shard, bookkeeping and definition.

    Args:
        service: the service of the log.
        partitions: number of partitions of the event topic.
        facts: further metadata of every event.
    """

    cdef str service
    cdef int partitions
    cdef object facts
    cdef dict kept

    def __init__(self, str service, int partitions, facts):
        self.service = service
        self.partitions = partitions
        self.facts = facts
        self.kept = {}

    def __call__(self, server_id, str shard, bint bookkeeping=False, bint definition=False):
        """Return the route of a shard's events that a server executed first."""
        key = server_id, shard, bookkeeping, definition
        cdef Route route = self.kept.get(key)
        if route is None:
            if len(self.kept) >= KEPT:
                self.kept.clear()
            facts = {
                "mysql_server_id": str(server_id),
                "dbms_type": "mysql",
                "tz_aware": "true",  # every TIMESTAMP is in UTC
                "service": self.service,
                "shard": shard,
                **self.facts,
                **(MARK if bookkeeping else {}),
                **(UNSAFE if definition else {}),
            }
            route = Route.__new__(Route)
            route.server_id = server_id
            route.shard = shard
            route.partition = partition_of(shard, self.partitions)
            route.key = shard.encode()
            route.bookkeeping = bookkeeping
            route.definition = definition
            route.barrier = is_barrier(Kind.TRANSACTION, shard)  # a DDL has UNKNOWN_SHARD
            route.facts = facts
            route.metadata = avro.string_map(facts)
            self.kept[key] = route
        return route
