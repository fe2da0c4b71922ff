"""The section `source.snapshot`: how tables are loaded."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from connector.config.section import Seconds, Section, TableGlob

Connections = Annotated[int, Field(ge=1, le=64)]


class InitialLoad(Section):
    """The options of loads of tables: the initial load, and those of `thl load`."""

    connections: Connections = Field(
        4,
        description="Connections that read at the same time, all in the same consistent view. "
        "`max_connections` of the source must allow them.",
    )
    chunk_rows: int = Field(
        50_000,
        ge=1,
        description="Approximate rows of a chunk: a range of the primary key that one connection reads. A table "
        "without a primary key is one chunk.",
    )
    lock: Literal["none", "brief"] = Field(
        "none",
        description="How a load finds the position of rows in the log. `none`: without locking the source, by GTIDs "
        "of MySQL or the views' positions of MariaDB. `brief`: FLUSH TABLES WITH READ LOCK for some statements at the "
        "beginning of each round; it waits for a second at most, and is not asked for while a statement runs for "
        "longer: such a round begins without it. A MySQL without GTIDs always needs the lock; so does, under writes, "
        "a table without a primary key.",
    )
    round_seconds: float = Field(
        1.0,
        gt=0,
        le=60,
        description="How long a round of loads begins to read chunks, in one view. Transactions are published "
        "after the round's rows, so they wait for about so long.",
    )
    max_rows_per_second: int | None = Field(
        None,
        ge=1,
        description="Rows that loads publish in a second, on average; a round reads about as many at most. none: no "
        "limit.",
    )
    max_replica_lag: Seconds | None = Field(
        None,
        description="Seconds that a source which is a replica may lag behind its own source: while one of its channels "
        "lags by more, or does not run, no round of a load begins. A delay (SOURCE_DELAY) counts. On MariaDB it needs "
        "SLAVE MONITOR. none: no limit.",
    )
    min_until_purge: Seconds | None = Field(
        3600.0,
        description="While the source may purge the binary log file that the stream needs next in fewer seconds, no "
        "round of a load begins before the stream is in the newest file, which is not purged. none: no limit.",
    )
    first: tuple[TableGlob, ...] = Field(
        (),
        description="Patterns of tables (`schema.table`, with `*` and `?`) that the initial load loads first, in the "
        "order of the patterns; the other tables follow by name.",
    )
