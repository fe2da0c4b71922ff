"""The section `publish`: how events are assigned to shards, split into fragments and committed to Kafka."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from connector.config.section import Bytes, Seconds, Section, TableGlob


def _server_address(url: SecretStr) -> SecretStr:
    wrong = ValueError("not a server address: write mysql://[user[:password]@]host[:port]")
    try:
        parts = urlsplit(url.get_secret_value())
        whole = bool(parts.scheme in {"mysql", "mariadb"} and parts.hostname and parts.port != 0)
    except ValueError:
        raise wrong from None
    if not whole or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise wrong
    return url


ServerAddress = Annotated[SecretStr, AfterValidator(_server_address)]


class Shard(Section):
    """A named shard."""

    name: Annotated[str, Field(pattern=r"^[^#].*$", max_length=200)] = Field(description="Must not begin with #.")
    pattern: TableGlob = Field(description="Its tables: `schema.table` or `schema`, with `*` and `?`, in any case.")


class Publish(Section):
    """Shards, fragments and Kafka transactions of `thl produce`."""

    shard_by: Literal["schema", "table"] = Field(
        "schema",
        description="Unit of ordering for consumers of a part of the log: transactions of one schema, or of one table, "
        "keep their order.",
    )
    shards: tuple[Shard, ...] = Field(
        (),
        description='Named shards; the first pattern that matches a table wins: `[{"name": "money", "pattern": '
        '"shop.pay*"}]`. Several patterns may share a name. A changed rule applies after a restart.',
    )
    bookkeeping: tuple[TableGlob, ...] = Field(
        (),
        description="Tables (`schema.table` or `schema`, with `*` and `?`) of tools: events that change only them have "
        "is_metadata=true in their metadata, as events of source.heartbeat_table always have.",
    )

    fragment_bytes: Bytes = Field(
        64 << 10, description="Target size of an encoded fragment; a larger row is a fragment of its own."
    )
    wait_for: tuple[ServerAddress, ...] = Field(
        (),
        description="Replicas, `mysql://[user[:password]@]host[:port]` (default: user and TLS of the source). A "
        "transaction is published only when all of them have executed it, so a failover to one of them traps no "
        "event. Needs GTIDs. An unreachable replica stops publication.",
    )
    shard_bytes: Bytes = Field(4 << 20, description="A larger event gets the shard #UNKNOWN and is not buffered.")
    commit_bytes: Bytes = Field(16 << 20, description="A Kafka transaction is committed after this many bytes.")
    commit_ms: Annotated[int, Field(ge=1)] = Field(10, description="… or after this many milliseconds.")
    idle_position_seconds: Seconds = Field(
        10.0, description="Interval at which the position advances while all transactions are filtered out."
    )
    queue_bytes: Bytes = Field(32 << 20, description="Maximum bytes of encoded fragments that wait for Kafka.")
    compression: Literal["none", "lz4", "zstd", "snappy", "gzip"] = Field(
        "lz4", description="Compression of Kafka's record batches."
    )
