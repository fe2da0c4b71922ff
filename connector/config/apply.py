"""The sections `apply` and `target`: how Spark reads the log, and the database to which it is applied."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator

from connector.config.secret_files import Properties, read_secret_files
from connector.config.section import Bytes, Seconds, Section, TableGlob
from connector.config.target_url import TargetUrl

MetadataColumn = Literal["seqno", "gtid", "commit_time", "event_id", "server_id"]
ColumnName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]

SINGLE_WRITER_TARGETS: Final = {"sqlite": "SQLite", "duckdb": "DuckDB", "mysql": "MySQL", "mariadb": "MariaDB"}
"""Targets of one writer, without `target.indexes`, by their scheme."""

TARGET_ID: Final = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?"
TargetId = Annotated[str, Field(pattern=f"^(?:{TARGET_ID})?$")]

LOCAL: Final = re.compile(r"local(?:\[(\*|[1-9]\d*)(?:\s*,\s*\d+)?\])?")
"""A master whose tasks run in the driver's JVM; group 1: their number, `*` for the machine's cores, None for one."""

# As Spark 4.0 reads them (SparkMasterRegex, SparkSubmit); it has no others.
_MASTER: Final = re.compile(
    LOCAL.pattern + r"|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|yarn|k8s://\S+"
    r"|spark://[^\s,/]+:\d{1,5}(,[^\s,/]+:\d{1,5})*"
)
_HEAP: Final = re.compile(r"(\d+)([kmgt])", re.IGNORECASE)  # as -Xmx has it
_LEAST_HEAP: Final = 450 << 20  # Spark refuses less (UnifiedMemoryManager: 1.5 times what it reserves)


def _master(master: str) -> str:
    """Check a master before Spark does, which takes seconds, and says it with a stack trace."""
    if not _MASTER.fullmatch(master):
        raise ValueError(
            "not a master of Spark: local[N], spark://host:port[,host:port…], yarn, k8s://https://host:port"
        )
    return master


def _heap(heap: str) -> str:
    found = _HEAP.fullmatch(heap)
    if found is None or int(found[1]) << (10 * (1 + "kmgt".index(found[2].lower()))) < _LEAST_HEAP:
        raise ValueError(f"not a size of at least {_LEAST_HEAP >> 20}m, as 1g or 512m")
    return heap


class Apply(Section):
    """Spark session, batch sizes and continuous mode of `thl apply`."""

    master: Annotated[str, AfterValidator(_master)] = Field(
        "local[2]",
        description="Spark master for the session that `thl apply` starts: local[N], or a cluster's "
        "(`spark://host:port`): docs/cluster.md.",
    )
    executor_timeout: Seconds = Field(
        60.0,
        description="On a cluster: seconds to wait for the master, and for executors with free cores, at start and "
        "when all are lost; then the applier exits with 11.",
    )
    batch_messages: int = Field(
        1000,
        ge=1,
        description="Messages of the first micro-batch of a start; the number of the later ones follows `batch_bytes`.",
    )
    batch_bytes: Bytes = Field(
        48 << 20,
        description="Target bytes of the messages of a later micro-batch; bounds memory.",
    )
    queue_batches: int = Field(2, ge=1, description="Maximum number of batches that wait for the target.")
    continuous: bool = Field(
        True,
        description="At the log's end use continuous mode: each message is applied as it arrives. With master local[N] "
        "N must be greater than the number of partitions.",
    )
    heap: Annotated[str, AfterValidator(_heap)] = Field(
        "1g",
        description="JVM heap of the session that `thl apply` starts. If it cannot hold some 36 messages of each "
        "partition, each of the topic's max.message.bytes, only micro-batches are used.",
    )
    checkpoint_dir: Path | None = Field(
        None,
        description="Folder in which Spark's checkpoint folder is created at each start; its content is never "
        "trusted. None: the system's folder for temporary files. A folder that other users can write to is refused.",
    )
    spark: Properties = Field(
        default_factory=dict,
        description="Any further Spark setting. Only settings that start the JVM appear on a command line.",
    )


class Target(Section):
    """The database that is kept equal to the source."""

    url: TargetUrl = Field(
        SecretStr("sqlite:///thl.db"),
        description="sqlite:///file, duckdb:///file, postgresql://user:password@host:port/database, or "
        "mysql://user:password@host:port for a MySQL (8.0.19 or later) or a MariaDB (10.6 or later): docs/target.md.",
    )
    url_file: Path | None = Field(None, description="File that holds the url.")
    id: TargetId = Field(
        "",
        description="Name of this target among those of the service, for `thl load --for-target`: letters, digits, and "
        "`_ . -` between them. Empty: only loads for all targets are for it. Change it only while no table is being "
        "loaded here.",
    )
    audit: bool = Field(
        False, description="Also write one row per applied event to thl_applied, in the same transaction."
    )
    metadata_columns: dict[MetadataColumn, ColumnName] = Field(
        default_factory=dict,
        description="Additional columns of every target table that identify the transaction that last inserted or "
        "updated a row: any of seqno, gtid, commit_time, event_id and server_id, each with its column name: `{seqno: "
        "thl_seqno, gtid: thl_gtid}`. seqno is required if there are any.",
    )
    history: tuple[TableGlob, ...] = Field(
        (),
        description="Tables (`shop.orders`, `shop.*`, `shop` for all of a schema) that have a history on the target: "
        "an append-only table with each change of a row, also those that a commit's compaction leaves out: seqno, "
        "position within the event, action, the row before and after it as JSON, commit time. The history of "
        "`shop.orders` is `shop__history.orders`. Rows begin with the start that first names a table: docs/target.md.",
    )
    binary_log: bool = Field(
        True,
        description="MySQL and MariaDB: whether the target's server writes what the applier does to its binary log. "
        "false needs the right to set sql_log_bin; the server's own replicas then lack it.",
    )
    definitions: Literal["source", "plain"] = Field(
        "source",
        description="MySQL and MariaDB: source: the target's tables are the source's, with indexes, collations, "
        "generated columns and foreign keys, because its DDL is executed as it is; what the target's product or "
        "version lacks stops the applier. plain: they have the columns, their types and the primary key, and text in a "
        "binary collation; for a source of the other product. Change it only for an empty target.",
    )
    statements: Literal["refuse", "execute"] = Field(
        "refuse",
        description="Changes that the source logged as statements (source.statements: keep): refuse: the applier "
        "stops. execute: a MySQL target executes them as a replica does, in the order of the log, with the options of "
        "their sessions; what cannot have the same effect is refused by name: docs/types.md. For a MySQL source, with "
        "target.definitions: source, without target.metadata_columns and target.history; the target's server needs "
        "performance_schema=ON.",
    )
    indexes: Literal["none", "unique", "all"] = Field(
        "none",
        description="PostgreSQL: which of the source's secondary indexes the target's tables get: none; unique: its "
        "unique keys; all. They are built once the initial load is complete, follow the source's DDL, and make "
        "applying slower. After a change the next start of the applier builds what is missing, which may take long; "
        "it drops no index for it. docs/types.md says which indexes differ.",
    )
    writers: int = Field(
        1,
        ge=1,
        le=64,
        description="PostgreSQL: the number of connections among which a large commit is divided, by table and key. "
        "With more than 1 the commit's parts become visible one after the other, within milliseconds. Meanwhile "
        "consistent is false in thl_position, and plain readers may see a part of a transaction, or one table before "
        "it and another one after it; readers who need whole transactions read by the snapshot in thl_progress, or "
        "check consistent in the same REPEATABLE READ transaction: docs/target.md. Commits of few rows, and DDL, go by "
        "one connection; so do all changes of a table without a primary key or with a float in its key, or on the "
        "target with a primary key over other columns, another unique index (also one of `target.indexes`), a foreign "
        "key, a trigger, a rule, partitions or child tables.",
    )
    snapshot_interval: Annotated[float, Field(ge=0, le=3600)] = Field(
        1.0,
        description="PostgreSQL with writers > 1: seconds between two snapshots that the applier exports for readers "
        "of whole transactions (thl_progress.snapshot). Three live at a time, on four further connections; vacuum "
        "keeps rows that they see. 0: none.",
    )
    on_error: Literal["stop", "quarantine"] = Field(
        "stop",
        description="What to do when the target refuses an event because of a table: a value that it cannot hold, a "
        "row that is missing or exists already, a DDL. stop: the applier exits. quarantine: the table stays as it is "
        "from that event on, its changes are counted and not applied, and everything else continues; `thl status` "
        "reports it as a problem: docs/target.md. Other errors stop the applier in any case.",
    )
    retries: int = Field(
        30, ge=0, description="Attempts to reach an unavailable target before the applier exits with 4."
    )

    @model_validator(mode="before")
    @classmethod
    def _reads_files(cls, given: Any) -> Any:
        return read_secret_files(given, "url")

    @model_validator(mode="after")
    def _indexes_need_postgresql(self) -> Target:
        scheme = self._scheme
        if self.indexes != "none" and scheme in SINGLE_WRITER_TARGETS:
            name = SINGLE_WRITER_TARGETS[scheme]
            embedded = scheme in ("sqlite", "duckdb")
            others = "no secondary indexes" if embedded else "the source's with target.definitions=source"
            raise ValueError(f"target.indexes is for PostgreSQL only; a {name} target has {others}")
        return self

    @model_validator(mode="after")
    def _writers_need_postgresql(self) -> Target:
        scheme = self._scheme
        if self.writers > 1 and scheme in SINGLE_WRITER_TARGETS:
            name = SINGLE_WRITER_TARGETS[scheme]
            raise ValueError(f"target.writers > 1 is for PostgreSQL only; a {name} target has one writer")
        return self

    @property
    def executes_statements(self) -> bool:
        """True if changes that were logged as statements are executed."""
        return self.statements == "execute"

    @model_validator(mode="after")
    def _statements_need_mysql(self) -> Target:
        if not self.executes_statements:
            return self
        if self._scheme != "mysql":
            raise ValueError("target.statements: execute is for a MySQL target only (mysql://)")
        if self.definitions != "source":
            raise ValueError("target.statements: execute needs target.definitions: source")
        if self.metadata_columns or self.history:
            raise ValueError(
                "target.statements: execute knows no rows for target.metadata_columns and target.history: remove these"
            )
        return self

    @property
    def _scheme(self) -> str:
        return self.url.get_secret_value().partition(":")[0].lower()

    @model_validator(mode="after")
    def _metadata_columns_have_an_order(self) -> Target:
        names = [name.lower() for name in self.metadata_columns.values()]
        if names and "seqno" not in self.metadata_columns:
            raise ValueError("metadata_columns: add seqno, which orders the changes of a row")
        if len(set(names)) < len(names):
            raise ValueError("metadata_columns: two columns have the same name")
        return self
