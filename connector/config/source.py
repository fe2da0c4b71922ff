"""The section `source`: the MySQL or MariaDB server, and how its binary log is read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, SecretStr, model_validator

from connector.config.filters import Filters
from connector.config.records import RecordStore
from connector.config.secret_files import read_secret_files
from connector.config.section import Bytes, Seconds, Section
from connector.config.snapshot import InitialLoad

LARGEST_EVENT: Final = 256 << 20  # bytes: an UPDATE of a row of 64 MiB, and as much again
ServerId = Annotated[int, Field(ge=0, le=2**32 - 1)]


def _verify_mode(given: object) -> object:
    """Accept a YAML boolean: true is identity, false is none."""
    return {"true": "identity", "false": "none"}.get(str(given).lower(), given)


TlsVerify = Annotated[Literal["identity", "ca", "none"], BeforeValidator(_verify_mode)]


class Source(Section):
    """The MySQL or MariaDB server whose binary log is read."""

    host: str = Field("127.0.0.1", description="Host name or address.")
    port: int = Field(3306, ge=1, le=65535, description="TCP port.")
    user: str = Field(
        "thl",
        description="Needs REPLICATION SLAVE and REPLICATION CLIENT; for an initial load also SELECT, FLUSH_TABLES "
        "(MariaDB and MySQL before 8.0.23: RELOAD) and XA_RECOVER_ADMIN (MySQL 8.0 or newer).",
    )
    password: SecretStr = Field(SecretStr(""), description="The user's password.")
    password_file: Path | None = Field(None, description="File that holds the password.")
    server_id: int = Field(
        7411,
        ge=1,
        le=2**32 - 1,
        description="Replica server ID of this connector; must be unique in the topology. Transactions written under "
        "this ID are not published.",
    )
    ignore_server_ids: tuple[ServerId, ...] = Field(
        (), description="Transactions of servers with these IDs are not published, to break circular replication."
    )
    start: str = Field(
        "snapshot",
        description="Position at which a new log begins: snapshot | now | earliest | a GTID set | file:position. An "
        "existing log always continues from its own position.",
    )
    archive: Path | None = Field(
        None, description="Folder kept by `thl archive`, from which binary logs are read that the source has purged."
    )
    tls: bool = Field(False, description="Use TLS. A server without TLS is refused.")
    tls_ca: Path | None = Field(
        None, description="CA certificates (PEM) that verify the server; none: the system's CA store."
    )
    tls_verify: TlsVerify = Field(
        "identity",
        description="identity (or true): verify the certificate and that it names `host`. ca: verify the certificate, "
        "not the name, as for the certificates that MySQL generates. none (or false): no verification; anyone between "
        "can read the password and the data.",
    )
    tls_cert: Path | None = Field(None, description="Client certificate (PEM), for users with REQUIRE X509.")
    tls_key: Path | None = Field(
        None, description="Private key of tls_cert (PEM, not encrypted), if it is not in the same file."
    )
    dump_heartbeat: Seconds = Field(
        5.0, description="Seconds without an event after which the server sends a heartbeat on the dump connection."
    )
    heartbeat_table: str = Field(
        "", description="schema.table on the source that `thl heartbeat` writes to; created if it is missing."
    )
    heartbeat_interval: Seconds | None = Field(
        None, description="Seconds between heartbeats that the producer writes to heartbeat_table; none: no heartbeats."
    )
    semi_sync: bool = Field(
        False,
        description="The producer is a semi-synchronous replica: a commit on the source waits until Kafka has the "
        "transaction (docs/operations.md has the prerequisites).",
    )
    net_write_timeout: int = Field(
        3600, ge=30, description="Seconds for which the server waits for the connector to accept data."
    )
    batch_bytes: Bytes = Field(
        4 << 20, description="Target bytes of the batches into which a large transaction is split; bounds memory."
    )
    retries: int = Field(
        30, ge=0, description="Attempts to reach an unavailable source before the producer exits with 4."
    )
    restarts_in_event: int = Field(
        10, ge=0, description="Attempts to read one event from its start before the producer gives up."
    )
    accept_unlogged_cascades: bool = Field(
        False,
        description="Run although the binary log lacks rows changed by ON DELETE or ON UPDATE CASCADE (MySQL "
        "before 9.6, MariaDB); the target will differ.",
    )
    accept_gtids_alone: bool = Field(
        False,
        description="Continue by GTID if the source has purged the binary log file that was read last. A reset of the "
        "source, or transactions without GTIDs, then go unnoticed.",
    )
    keep_invalid_text: tuple[str, ...] = Field(
        (),
        description="Patterns of columns (`schema.table.column`, with `*` and `?`) whose text may be invalid in its "
        "character set: the log holds its bytes instead of a string. In other columns invalid text is an error.",
    )
    statements: Literal["refuse", "keep"] = Field(
        "refuse",
        description="Changes that the source logged as statements: refuse: stop with an error. keep: publish the "
        "statement, for consumers that can execute it: an applier does with target.statements: execute, else it stops "
        "there.",
    )
    rows_query_bytes: int = Field(
        0,
        ge=0,
        le=1 << 16,
        description="Bytes of the original statement's text (binlog_rows_query_log_events, MariaDB's annotations) that "
        "are kept in an event's metadata; 0: none, as it may hold secrets.",
    )
    filters: Filters = Field(default_factory=Filters, description="The tables that are captured.")
    snapshot: InitialLoad = Field(default_factory=InitialLoad, description="How tables are loaded.")
    records: RecordStore = Field(
        default_factory=RecordStore, description="The store that completes partial row images."
    )
    largest_event_bytes: int = Field(
        LARGEST_EVENT,
        ge=1 << 20,
        le=1 << 30,
        description="A larger event in a compressed transaction (binlog_transaction_compression, MariaDB's "
        "log_bin_compress) stops the producer: a few kB can decompress to a gigabyte, and an event needs about three "
        "times its size in memory.",
    )

    @model_validator(mode="before")
    @classmethod
    def _reads_files(cls, given: Any) -> Any:
        return read_secret_files(given, "password")

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

    @model_validator(mode="after")
    def _rules_apply_to_rows(self) -> Source:
        if self.filters.tables and self.statements == "keep":
            raise ValueError("filters.tables apply to rows: with statements=keep the changed rows are unknown")
        if self.records.dir is not None and self.statements == "keep":
            raise ValueError(
                "records.dir completes rows: with statements=keep the changed rows are unknown: leave out one of both; "
                "a log that has statements already needs a new one, another `service`"
            )
        if self.records.dir is not None and self.ignore_server_ids:
            raise ValueError("records: with ignore_server_ids rows change that the record store does not see")
        if self.records.dir is not None and self.accept_unlogged_cascades:
            raise ValueError("records: with accept_unlogged_cascades rows change that the record store does not see")
        every = {"insert", "update", "delete", "ddl"}
        if self.records.dir is not None and any(not every.issubset(rule.actions) for rule in self.filters.tables):
            raise ValueError(
                "records: with a rule whose actions leave out rows or DDL the record store does not see all changes, "
                "nor the defaults of columns"
            )
        if self.rows_query_bytes and any(rule.drop or rule.mask for rule in self.filters.tables):
            raise ValueError("rows_query_bytes: texts of statements hold the values that rules drop or mask")
        return self
