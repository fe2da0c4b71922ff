"""Whether source and target are equal, at one moment, value by value.

Deliberately apart from everything that moves the data: MySQL's own text of every value is compared with the target's,
and nothing here uses the log's columns, its types or its Avro.

- `report`: what comes out. `values`: the one form in which values of both sides are compared.
- `source`, `sqlite`, `postgres`: who reads rows in that form. `target`: the seam of the latter two.
- `rules`: what rules of the configuration make of the source's values.
- `compare`: two streams of rows in any order, in bounded memory. `run`: all tables, at one seqno. `watch`: again and
  again.
"""

from connector.verify.report import Difference, Report, TableReport, Verdict
from connector.verify.run import verify

__all__ = ["Difference", "Report", "TableReport", "Verdict", "verify"]
