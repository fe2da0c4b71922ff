"""The configuration: one typed model.

A YAML file, over it the environment (`THL_SOURCE__HOST`), over it flags (`--set source.host=…`). The reference page,
the flags and the environment's names are made from these fields: each is documented here and nowhere else.
`load` in `connector.config.loading` reads it; stages get their own section and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from connector.patterns import glob
from connector.redaction import remember, secrets_of

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,200}$")]
Bytes = Annotated[int, Field(ge=1)]
LEAST_MESSAGE: Final = 16 << 10  # bytes: a fragment's header, and enough beside it
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
MIN_HASH_KEY = 16
LARGEST_EVENT: Final = 256 << 20  # an UPDATE of a row of 64 MiB, and as much again
FILE: Final = "_file"  # behind the name of a secret: the file that holds it
Action = Literal["insert", "update", "delete", "ddl"]
TransactionColumn = Literal["seqno", "gtid", "commit_time", "event_id", "server_id"]
ColumnName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]
ServerId = Annotated[int, Field(ge=0, le=2**32 - 1)]
# MySQL's names have at most 64 characters, and no space at their end.
ExactColumn = Annotated[str, Field(pattern=r"^[^*?\x00]+$", max_length=64)]
NewColumn = Annotated[str, Field(pattern=r"^[^\x00]*[^\x00\s]$", max_length=64)]


def _from_files(given: Any, *fields: str) -> Any:
    """A section's input, where a secret stands in a file that `…_file` names: with what the file holds."""
    if not isinstance(given, dict):
        return given
    read = dict(given)
    for field in fields:
        named = read.get(f"{field}_file")
        if named is None or not isinstance(named, str | Path):
            continue
        if read.get(field):
            raise ValueError(f"{field} and {field}_file: only one of them")
        read[field] = _secret_in(f"{field}_file", Path(named))
    return read


def _secret_in(field: str, file: Path) -> str:
    """What a file holds, without the end of its line."""
    try:
        return file.read_text(encoding="utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"{field}: {file} is not UTF-8") from None
    except OSError as error:
        raise ValueError(f"{field}: {file} cannot be read: {error.strerror}") from None


def _properties(given: dict[str, str]) -> dict[str, str]:
    """Others' properties: where `x_file` stands, the file holds what x is to be. (None of theirs ends like that.)"""
    read = {}
    for name, value in given.items():
        key = name.removesuffix(FILE)
        if key in read or (key != name and key in given):
            raise ValueError(f"{key} and {key}{FILE}: only one of them")
        read[key] = value if key == name else _secret_in(name, Path(value))
    return read


# Not shown where a section is: passwords are among them.
Properties = Annotated[dict[str, str], AfterValidator(_properties), Field(repr=False)]


class Section(BaseModel):
    """Base of the sections: immutable, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Mask(Section):
    """What a column holds instead of its value: one of these."""

    fixed: str | int | float | None = Field(
        None, description="This in every row; `null`: NULL. Text for a text column, a number for one of numbers."
    )
    hash: Annotated[int, Field(ge=16, le=64)] | None = Field(
        None,
        description="So many hexadecimal digits of HMAC-SHA256 by `source.filters.hash_key`: equal texts stay equal. "
        "Of text columns that have room for them.",
    )
    truncate: Annotated[int, Field(ge=0)] | None = Field(
        None, description="So many characters of a text, from its beginning."
    )

    @model_validator(mode="after")
    def _one(self) -> Mask:
        given = self.model_fields_set
        if len(given) != 1 or (given != {"fixed"} and self.hash is None and self.truncate is None):
            raise ValueError("one of fixed, hash and truncate")
        return self

    @model_serializer(mode="wrap")
    def _tells_null(self, told: SerializerFunctionWrapHandler) -> dict[str, object]:
        """`fixed: null` is something else than no `fixed`, also where defaults are left out."""
        kept: dict[str, object] = told(self)
        return kept | {"fixed": self.fixed} if "fixed" in self.model_fields_set else kept


class TableRule(Section):
    """What is published of some tables. Of several rules that match a table, the first counts, and no other."""

    match: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="Patterns of the tables: `schema.table` or `schema`, with `*` and `?`."
    )
    actions: tuple[Action, ...] = Field(
        ("insert", "update", "delete", "ddl"),
        description="Only rows that were so changed, and definitions with `ddl`. TRUNCATE is a delete, the initial "
        "load inserts. A transaction of which nothing is left is no event.",
    )
    drop: tuple[str, ...] = Field(
        (), description="Patterns of columns that are left out of rows and definitions; none of the key."
    )
    mask: dict[str, Mask] = Field(
        default_factory=dict,
        description="Pattern of columns → what they hold instead. Key columns can be hashed. Defaults in definitions "
        "stay as they are.",
    )
    zero_dates: tuple[str, ...] = Field(
        (), description="Patterns of columns in which the date 0000-00-00 becomes NULL, but in those of the key."
    )
    rename: dict[ExactColumn, NewColumn] = Field(
        default_factory=dict,
        description="Column → the name under which it is published, in rows and definitions; key columns, too. Without "
        "`*` and `?`. The other fields know columns by the source's names.",
    )
    publish_as: str = Field(
        "",
        pattern=r"^$|^[^.]+(\.[^.]+)?$",
        description="The name under which they are published: `schema.table`, where match is one table without `*` and "
        "`?`; or `schema`, where match is whole schemas without these.",
    )

    @model_validator(mode="after")
    def _has_one_name(self) -> TableRule:
        wanted = self.publish_as.count(".")
        names = [pattern for pattern in self.match if pattern.count(".") == wanted and not set("*?") & set(pattern)]
        if self.publish_as and (len(names) != len(self.match) or (wanted and len(names) > 1)):
            raise ValueError("publish_as: match must be one table, or whole schemas, without `*` and `?`")
        return self

    @model_validator(mode="after")
    def _has_columns_of_one_name(self) -> TableRule:
        for names in (list(self.rename), list(self.rename.values())):
            folded = [name.lower() for name in names]
            if twice := [name for name, low in zip(names, folded, strict=True) if folded.count(low) > 1]:
                raise ValueError(f"rename: {' and '.join(twice)} is one name, and stands there twice")
        if dropped := [name for name in self.rename if finds_column(self.drop, name)]:
            raise ValueError(f"rename: {', '.join(dropped)} is dropped by the same rule")
        return self

    @property
    def shapes(self) -> bool:
        """Whether it changes what stands in rows."""
        return bool(self.drop or self.mask or self.zero_dates)


def finds_column(patterns: tuple[str, ...], column: str) -> bool:
    """Whether one of a rule's patterns finds a column: no column's name has a case."""
    return any(glob(pattern.lower()).fullmatch(column.lower()) for pattern in patterns)


class Filters(Section):
    """Which tables are published. Patterns are `schema.table` or `schema`, with `*` and `?`."""

    do: tuple[str, ...] = Field(
        (),
        description="Only tables that match one of these; empty: all. Never those of `mysql`, `sys`, "
        "`information_schema` and `performance_schema`. A captured table that is renamed to one that is "
        "not is dropped in the log; the other way round ends the producer, for the log lacks its rows.",
    )
    ignore: tuple[str, ...] = Field((), description="Not tables that match one of these; wins over do.")
    tables: tuple[TableRule, ...] = Field((), description="Rules for some of these tables: what is published of them.")
    unknown_ddl: tuple[str, ...] = Field(
        (),
        description="DDL that is not understood and whose whole text matches one of these (`*`, `?`, any case) is left "
        "out, e.g. `DROP GHOST *`. Any other that is not understood ends the producer where some tables are not "
        "captured, for nobody knows which it is about; where all are, it is published.",
    )
    hash_key: SecretStr = Field(
        SecretStr(""), description="Of masks that hash: at least 16 characters, best from the environment."
    )
    hash_key_file: Path | None = Field(None, description="A file that holds it instead.")

    @model_validator(mode="after")
    def _has_key(self) -> Filters:
        hashes = any(mask.hash is not None for rule in self.tables for mask in rule.mask.values())
        if self.hash_key.get_secret_value() and self.hash_key_file:
            raise ValueError("hash_key and hash_key_file: only one of them")
        if hashes and not self.hash_key_file and len(self.hash_key.get_secret_value()) < MIN_HASH_KEY:
            raise ValueError(f"a mask that hashes needs a hash_key of at least {MIN_HASH_KEY} characters")
        return self


class Source(Section):
    """The MySQL or MariaDB server whose binary log is read."""

    host: str = Field("127.0.0.1", description="Host name or address.")
    port: int = Field(3306, ge=1, le=65535, description="TCP port.")
    user: str = Field("thl", description="Needs REPLICATION SLAVE and CLIENT, for a snapshot SELECT and FLUSH_TABLES.")
    password: SecretStr = Field(SecretStr(""), description="The user's password.")
    password_file: Path | None = Field(None, description="A file that holds it instead.")
    server_id: int = Field(
        7411,
        ge=1,
        le=2**32 - 1,
        description="Ours: no server or replica may share it. What was written under it is not published.",
    )
    ignore_server_ids: tuple[ServerId, ...] = Field(
        (), description="What servers of these ids wrote is not published: so a ring of replications does not turn."
    )
    start: str = Field(
        "snapshot",
        description="Where a new log begins: snapshot | now | earliest | a GTID set | file:position. "
        "A log that exists goes on from its own position whatever this says.",
    )
    archive: Path | None = Field(
        None, description="A folder kept by `thl archive`: what the source has purged is read from it."
    )
    tls: bool = Field(False, description="Use TLS to the server; one that offers none is refused.")
    tls_ca: Path | None = Field(
        None, description="CA certificates (PEM) that verify the server; none: those that this machine trusts."
    )
    tls_verify: Literal["identity", "ca", "none"] = Field(
        "identity",
        description="identity: its certificate is verified and names `host`. ca: verified, whatever it names, as for "
        "the certificates that MySQL makes itself. none: not verified, so whoever stands between can read the password "
        "and the data.",
    )
    tls_cert: Path | None = Field(None, description="Our own certificate (PEM), for users with REQUIRE X509.")
    tls_key: Path | None = Field(None, description="Its private key (PEM, not encrypted), if not in the same file.")
    heartbeat: Seconds = Field(5.0, description="Seconds of silence after which the server sends a heartbeat.")
    heartbeat_table: str = Field(
        "", description="schema.table on the source, made where it is missing, that `thl heartbeat` writes to."
    )
    heartbeat_interval: Seconds | None = Field(
        None, description="Seconds between heartbeats that the producer writes there itself; none: it writes none."
    )
    net_write_timeout: int = Field(3600, ge=30, description="Seconds the server waits for us to take data.")
    piece_bytes: Bytes = Field(4 << 20, description="Encoded bytes of a transaction that are handed on at once.")
    retries: int = Field(30, ge=0, description="Attempts to reach a server that is gone, before giving up.")
    restarts_in_event: int = Field(10, ge=0, description="Times one event may be begun again before giving up.")
    accept_unlogged_cascades: bool = Field(
        False, description="Go on although ON DELETE/UPDATE CASCADE changes are not in the binary log."
    )
    accept_gtids_alone: bool = Field(
        False,
        description="Go on by GTIDs where the source has purged the file that was read last: nothing shows then that "
        "it was not reset meanwhile, or wrote transactions without GTIDs.",
    )
    keep_invalid_text: tuple[str, ...] = Field(
        (),
        description="Text whose bytes are not valid in its character set is an error, but in columns that match one of "
        "these (`schema.table.column`, with `*` and `?`) it is kept: the log's value is bytes instead of a string.",
    )
    statements: Literal["refuse", "keep"] = Field(
        "refuse",
        description="Changes that the source logged as statements: an error, or kept as they are, for consumers that "
        "can execute them. No target can: applying stops there.",
    )
    rows_query_bytes: int = Field(
        0,
        ge=0,
        le=1 << 16,
        description="Of the text of a statement whose changes were logged as rows (binlog_rows_query_log_events, "
        "MariaDB's annotations) so many bytes go into the event's metadata; 0: none, for it may hold secrets.",
    )
    filters: Filters = Field(default_factory=Filters, description="Which tables are published.")

    @model_validator(mode="before")
    @classmethod
    def _reads_files(cls, given: Any) -> Any:
        return _from_files(given, "password")

    @model_validator(mode="after")
    def _tls_is_used(self) -> Source:
        files = [name for name in ("tls_ca", "tls_cert", "tls_key") if getattr(self, name) is not None]
        if files and not self.tls:
            raise ValueError(f"{', '.join(files)}: not used without tls: true")
        if self.tls_ca is not None and self.tls_verify == "none":
            raise ValueError("tls_ca: not used with tls_verify: none")
        if self.tls_key is not None and self.tls_cert is None:
            raise ValueError("tls_key: not used without tls_cert")
        return self

    largest_event_bytes: int = Field(
        LARGEST_EVENT,
        ge=1 << 20,
        le=1 << 30,
        description="A larger event in a compressed transaction (binlog_transaction_compression, MariaDB's "
        "log_bin_compress) ends the producer: a few kB can stand for a gigabyte, and an event has to be in memory "
        "whole, three times.",
    )

    @model_validator(mode="after")
    def _rules_are_about_rows(self) -> Source:
        if self.filters.tables and self.statements == "keep":
            raise ValueError("filters.tables are about rows: with statements=keep nobody knows which rows change")
        if self.rows_query_bytes and any(rule.drop or rule.mask for rule in self.filters.tables):
            raise ValueError("rows_query_bytes: the texts of statements hold what rules drop or mask")
        return self


_BROKER: Final = re.compile(r"(?:\w+://)?(?:\[[0-9A-Fa-f:.]+(?:%\w+)?\]|[^\s:/@\[\]]+):(\d{1,5})")


def _brokers(text: str) -> str:
    for address in text.split(","):
        found = _BROKER.fullmatch(address.strip())
        if found is None or not 0 < int(found[1]) <= 65535:
            raise ValueError("not addresses of brokers: write host:port[,host:port…], with ports from 1 to 65535")
    return text


class Kafka(Section):
    """The brokers, and the topics `thl.<service>`, and behind that name `.control`, `.position`, `.prepared`."""

    bootstrap: Annotated[str, AfterValidator(_brokers)] = Field("127.0.0.1:9092", description="host:port[,host:port…].")
    topic_prefix: Name = Field("thl", description="Topics are <prefix>.<service>[.control|.position|.prepared].")
    partitions: int = Field(1, ge=1, le=1024, description="Of the event topic, when it is created.")
    replication: int = Field(3, ge=1, description="Of every topic, when it is created.")
    min_isr: int = Field(2, ge=1, description="min.insync.replicas, when created; checked when it exists.")
    allow_unsafe: bool = Field(False, description="Accept topics that can lose data: for a sandbox.")
    retention_hours: int = Field(168, ge=-1, description="Of the event topic; -1: for ever.")
    max_message_bytes: Bytes = Field(
        2 << 20,
        ge=LEAST_MESSAGE,
        description="max.message.bytes of the event topic, and .prepared, when created; a larger row comes in parts. "
        "Spark's JVM holds some 36 such messages of each partition where it reads continuously: see apply.heap.",
    )
    properties: Properties = Field(
        default_factory=dict,
        description="Any librdkafka property (SASL, TLS …), for producer and consumers. `sasl.password_file: FILE` "
        "takes sasl.password from a file, and so with every property here and in the mappings like this one.",
    )
    spark_properties: Properties = Field(
        default_factory=dict, description="The same for Spark's Java client, with or without `kafka.` before the names."
    )
    retries: int = Field(
        30,
        ge=0,
        description="Attempts to reach brokers that are gone, or a log that `thl produce` has not begun, before "
        "giving up with 4: within ten seconds for each of them, five minutes for 30. `thl apply` counts "
        "those of a target by themselves: target.retries.",
    )


class Registry(Section):
    """A schema registry with Confluent's API. The producer alone asks it, once, when it starts; no reader needs it."""

    url: SecretStr = Field(
        SecretStr(""),
        description="http(s)://host:port/path. The schema is registered as <topic>-value, compatible FULL_TRANSITIVE, "
        "and messages begin by Confluent's wire format. Empty: by Avro's single-object encoding. A log may have both.",
    )
    url_file: Path | None = Field(None, description="A file that holds it instead.")
    properties: Properties = Field(
        default_factory=dict,
        description="Any property of confluent-kafka's SchemaRegistryClient (basic.auth.user.info, ssl.ca.location …).",
    )

    @model_validator(mode="before")
    @classmethod
    def _reads_files(cls, given: Any) -> Any:
        return _from_files(given, "url")


def _tables(pattern: str) -> str:
    schema, dot, table = pattern.partition(".")
    if not schema or (dot and not table):
        raise ValueError("not a pattern of tables: write `shop`, `shop.orders` or `shop.*_log`")
    return pattern


Tables = Annotated[str, AfterValidator(_tables)]


def _address(url: SecretStr) -> SecretStr:
    wrong = ValueError("not an address of a server: write mysql://[user[:password]@]host[:port]")
    try:
        parts = urlsplit(url.get_secret_value())
        whole = bool(parts.scheme in {"mysql", "mariadb"} and parts.hostname and parts.port != 0)
    except ValueError:
        raise wrong from None
    if not whole or parts.path not in {"", "/"} or parts.query or parts.fragment:
        raise wrong
    return url


Address = Annotated[SecretStr, AfterValidator(_address)]


class Shard(Section):
    """A shard that has a name of its own."""

    name: Annotated[str, Field(pattern=r"^[^#].*$", max_length=200)] = Field(description="Not with # at its beginning.")
    pattern: Tables = Field(description="Its tables: `schema.table` or `schema`, with `*` and `?`, in any case.")


class Publish(Section):
    """How events get their shards, are cut, and paced into Kafka transactions."""

    shard_by: Literal["schema", "table"] = Field(
        "schema", description="Which transactions keep their order for those who read a part: of a schema, of a table."
    )
    shards: tuple[Shard, ...] = Field(
        (),
        description='Shards made by patterns, the first that finds a table has it: `[{"name": "money", "pattern": '
        '"shop.pay*"}]`. Several may share a name. Another rule, at a start, holds from the next event on.',
    )
    bookkeeping: tuple[Tables, ...] = Field(
        (),
        description="Tables (`schema.table` or `schema`, with `*` and `?`) that tools keep for themselves: events of "
        "these alone have is_metadata=true in their metadata, as those of source.heartbeat_table always have.",
    )

    fragment_bytes: Bytes = Field(64 << 10, description="Aim for a fragment's encoded size; a larger row stands alone.")
    wait_for: tuple[Address, ...] = Field(
        (),
        description="Replicas, `mysql://[user[:password]@]host[:port]` (user and TLS as the source's where none is "
        "told): what they have not executed yet is not published, so nothing is trapped when one takes the source's "
        "place. Needs GTIDs. One that is gone holds publication.",
    )
    shard_bytes: Bytes = Field(4 << 20, description="An event larger than this is #UNKNOWN: not held back.")
    commit_bytes: Bytes = Field(16 << 20, description="A Kafka transaction ends at this many bytes.")
    commit_ms: Annotated[int, Field(ge=1)] = Field(10, description="… or after this many milliseconds.")
    idle_position_seconds: Seconds = Field(10.0, description="How often a filtered tail moves the position.")
    queue_bytes: Bytes = Field(32 << 20, description="Encoded fragments waiting for Kafka.")
    compression: Literal["none", "lz4", "zstd", "snappy", "gzip"] = Field("lz4", description="Kafka's batches.")


class Apply(Section):
    """How Spark reads the log and how much is applied at once."""

    master: str = Field("local[2]", description="Spark master when `thl apply` starts its own session.")
    batch_messages: int = Field(1000, ge=1, description="Messages read at once to begin with (maxOffsetsPerTrigger).")
    batch_bytes: Bytes = Field(48 << 20, description="… and later as many as have about these bytes: bounds memory.")
    queue_batches: int = Field(2, ge=1, description="Batches waiting for the target.")
    continuous: bool = Field(
        True,
        description="At the log's end read each message as it comes: with master local[N], N above the partitions.",
    )
    heap: str = Field(
        "1g",
        description="The JVM's heap when `thl apply` starts its own session. Where it has no room for "
        "some 36 messages of each partition as large as the topic's max.message.bytes allows, only batches are read.",
    )
    checkpoint_dir: Path | None = Field(
        None,
        description="Where Spark's own folder is made at each start, whose content is never trusted; none: in the "
        "system's folder for temporary files. One that other users may write to is refused.",
    )
    spark: Properties = Field(
        default_factory=dict,
        description="Any further Spark setting. None is on a command line but what starts the JVM.",
    )


_POSTGRES_URL: Final = re.compile(
    r"postgres(?:ql)?://(?:(?:[^\s@/?#%]|%[0-9A-Fa-f]{2})*@)?"  # user and password, encoded
    r"(?:(?:[\w.-]|%[0-9A-Fa-f]{2})*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?"
    r"(?:,(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?)*(?:/[^?\s]*)?(?:\?\S*)?"
)


def _target(url: SecretStr) -> SecretStr:
    text = url.get_secret_value()
    if text.startswith(("postgresql:", "postgres:")) and not _POSTGRES_URL.fullmatch(text):
        raise ValueError(
            "not postgresql://user:password@host:port/database: in user and password each character that is no letter "
            "or digit is written as in addresses of pages, %40 for @, %2F for /, %25 for %"
        )
    return url


class Target(Section):
    """The database that is kept equal to the source."""

    url: Annotated[SecretStr, AfterValidator(_target)] = Field(
        SecretStr("sqlite:///thl.db"),
        description="sqlite:///file or postgresql://user:password@host:port/database.",
    )
    url_file: Path | None = Field(None, description="A file that holds it instead.")
    audit: bool = Field(False, description="Also keep a row per applied event in thl_applied, in the same transaction.")
    transaction_columns: dict[TransactionColumn, ColumnName] = Field(
        default_factory=dict,
        description="Columns that each table of the target gets beside its own, which say of each row what transaction "
        "last inserted or updated it: of seqno, gtid, commit_time, event_id, server_id those that are wanted, and how "
        "they are called there: `{seqno: thl_seqno, gtid: thl_gtid}`. Where there are any, seqno is one.",
    )
    retries: int = Field(30, ge=0, description="Attempts to reach a target that is gone, before giving up.")

    @model_validator(mode="before")
    @classmethod
    def _reads_files(cls, given: Any) -> Any:
        return _from_files(given, "url")

    @model_validator(mode="after")
    def _rows_have_an_order(self) -> Target:
        names = [name.lower() for name in self.transaction_columns.values()]
        if names and "seqno" not in self.transaction_columns:
            raise ValueError("transaction_columns: with others there must be one of seqno, which tells what is newer")
        if len(set(names)) < len(names):
            raise ValueError("transaction_columns: each needs a name of its own")
        return self


class Metrics(Section):
    """Prometheus."""

    port: int = Field(0, ge=0, le=65535, description="Serve metrics here on loopback; 0: not at all.")


class Config(Section):
    """Everything."""

    service: Name = Field("default", description="The name of the log.")
    source: Source = Field(default_factory=Source)
    kafka: Kafka = Field(default_factory=Kafka)
    registry: Registry = Field(default_factory=Registry)
    publish: Publish = Field(default_factory=Publish)
    apply: Apply = Field(default_factory=Apply)
    target: Target = Field(default_factory=Target)
    metrics: Metrics = Field(default_factory=Metrics)

    @model_validator(mode="after")
    def _hides_its_secrets(self) -> Config:
        remember(_secrets(self))
        return self

    @property
    def topic(self) -> str:
        """The event topic."""
        return f"{self.kafka.topic_prefix}.{self.service}"

    @property
    def control_topic(self) -> str:
        """The control topic."""
        return f"{self.topic}.control"

    @property
    def position_topic(self) -> str:
        """The position topic."""
        return f"{self.topic}.position"

    @property
    def prepared_topic(self) -> str:
        """The topic of XA transactions that are prepared and not decided."""
        return f"{self.topic}.prepared"


def _secrets(section: Section) -> Iterator[str]:
    """Everything in a section that no text may show."""
    for name in type(section).model_fields:
        value = getattr(section, name)
        match value:
            case Section():
                yield from _secrets(value)
            case SecretStr():
                yield from _in_secret(value)
            case dict():
                for key, text in value.items():
                    yield from secrets_of(key, str(text))
            case tuple():
                for one in value:
                    if isinstance(one, SecretStr):
                        yield from _in_secret(one)


def _in_secret(value: SecretStr) -> Iterator[str]:
    """A secret as a whole, but of an address its password alone."""
    text = value.get_secret_value()
    if "://" not in text:
        yield text
    yield from secrets_of("", text)
