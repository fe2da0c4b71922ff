"""The sections `apply` and `target`: how Spark reads the log, and the database to which it is applied."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator

from connector.config.section import Bytes, Properties, Section, read_secret_files

MetadataColumn = Literal["seqno", "gtid", "commit_time", "event_id", "server_id"]
ColumnName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]
_POSTGRES_URL: Final = re.compile(
    r"postgres(?:ql)?://(?:(?:[^\s@/?#%]|%[0-9A-Fa-f]{2})*@)?"  # user and password, encoded
    r"(?:(?:[\w.-]|%[0-9A-Fa-f]{2})*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?"
    r"(?:,(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?)*(?:/[^?\s]*)?(?:\?\S*)?"
)


class Apply(Section):
    """Spark session, batch sizes and continuous mode of `thl apply`."""

    master: str = Field("local[2]", description="Spark master for the session that `thl apply` starts.")
    batch_messages: int = Field(1000, ge=1, description="Messages in the first micro-batches (maxOffsetsPerTrigger).")
    batch_bytes: Bytes = Field(
        48 << 20,
        description="Target size of later micro-batches; bounds memory.",
    )
    queue_batches: int = Field(2, ge=1, description="Maximum number of batches that wait for the target.")
    continuous: bool = Field(
        True,
        description="At the log's end use continuous mode: each message is applied as it arrives. With master local[N] "
        "N must be greater than the number of partitions.",
    )
    heap: str = Field(
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


def _target_url(url: SecretStr) -> SecretStr:
    text = url.get_secret_value()
    if text.startswith(("postgresql:", "postgres:")) and not _POSTGRES_URL.fullmatch(text):
        raise ValueError(
            "not postgresql://user:password@host:port/database: percent-encode every character of user and password "
            "that is not a letter or digit: %40 for @, %2F for /, %25 for %"
        )
    return url


class Target(Section):
    """The database that is kept equal to the source."""

    url: Annotated[SecretStr, AfterValidator(_target_url)] = Field(
        SecretStr("sqlite:///thl.db"),
        description="sqlite:///file or postgresql://user:password@host:port/database.",
    )
    url_file: Path | None = Field(None, description="File that holds the url.")
    audit: bool = Field(
        False, description="Also write one row per applied event to thl_applied, in the same transaction."
    )
    metadata_columns: dict[MetadataColumn, ColumnName] = Field(
        default_factory=dict,
        description="Additional columns of every target table that identify the transaction that last inserted or "
        "updated a row: any of seqno, gtid, commit_time, event_id and server_id, each with its column name: `{seqno: "
        "thl_seqno, gtid: thl_gtid}`. seqno is required if there are any.",
    )
    retries: int = Field(
        30, ge=0, description="Attempts to reach an unavailable target before the applier exits with 4."
    )

    @model_validator(mode="before")
    @classmethod
    def _reads_files(cls, given: Any) -> Any:
        return read_secret_files(given, "url")

    @model_validator(mode="after")
    def _metadata_columns_have_an_order(self) -> Target:
        names = [name.lower() for name in self.metadata_columns.values()]
        if names and "seqno" not in self.metadata_columns:
            raise ValueError("metadata_columns: add seqno, which orders the changes of a row")
        if len(set(names)) < len(names):
            raise ValueError("metadata_columns: two columns have the same name")
        return self
