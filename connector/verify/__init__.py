"""Compares source and target at one seqno, value by value.

Shares no code with what moves the data: MySQL's own text of every value is compared with the target's, without the
log's columns, types or Avro.

- `run`: compares all tables.
- `waiting`: waits until the target has everything in a view of the source.
- `watch`: repeats the comparison while the source is written.
- `report`: the result.
- `values`: the form in which values of both sides are compared.
- `source`: reads the source's rows in that form.
- `target`: the interface of a target's reader.
- `sqlite`: reads rows of a SQLite.
- `duckdb`: reads rows of a DuckDB.
- `postgres`: reads rows of a PostgreSQL.
- `mysql`: reads rows of a MySQL or MariaDB target.
- `rules`: applies the rules of the configuration to the source's values.
- `compare`: compares two streams of rows in any order, in bounded memory.
"""

from connector.verify.report import Difference, Report, TableReport, Verdict
from connector.verify.run import verify

__all__ = ["Difference", "Report", "TableReport", "Verdict", "verify"]
