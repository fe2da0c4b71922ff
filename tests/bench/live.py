"""A live load at a steady rate, generated inside the server to use little of the machine; an open loop."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from connector.demo.workload import Connect
from tests.bench.workload import SCHEMA

_SLICE = 1.0  # seconds after which a stop is noticed

# Every second transaction inserts one row, the others five. What is late is made up for, never left out.
PACED = """CREATE PROCEDURE paced(first BIGINT, begun DECIMAL(20,6), rate DOUBLE, start BIGINT, transactions BIGINT)
BEGIN
  DECLARE t BIGINT DEFAULT start;
  DECLARE n BIGINT;
  DECLARE late DOUBLE;
  WHILE t < start + transactions DO
    SET late = UNIX_TIMESTAMP(SYSDATE(6)) - begun - t / rate;
    IF late < 0 THEN DO SLEEP(-late); END IF;
    SET n = first + t * 5;
    START TRANSACTION;
    INSERT INTO oltp VALUES (n, 1, 2, 3.5, SYSDATE(6), NULL, 0.25, REPEAT('g', 90), 'h', NULL);
    IF t MOD 2 = 1 THEN
      INSERT INTO oltp VALUES (n + 1, 1, 2, 3.5, SYSDATE(6), NULL, 0.25, REPEAT('g', 90), 'h', NULL);
      INSERT INTO oltp VALUES (n + 2, 1, 2, 3.5, SYSDATE(6), NULL, 0.25, REPEAT('g', 90), 'h', NULL);
      INSERT INTO oltp VALUES (n + 3, 1, 2, 3.5, SYSDATE(6), NULL, 0.25, REPEAT('g', 90), 'h', NULL);
      INSERT INTO oltp VALUES (n + 4, 1, 2, 3.5, SYSDATE(6), NULL, 0.25, REPEAT('g', 90), 'h', NULL);
    END IF;
    COMMIT;
    SET t = t + 1;
  END WHILE;
END"""


class Live:
    """A running load, as a context.

    Args:
        connect: to the source.
        rate: transactions a second.
        first: the first id that it uses in table `oltp`.
    """

    def __init__(self, connect: Connect, rate: int, first: int = 0) -> None:
        self.rate = rate
        self.transactions = 0
        self._connect = connect
        self._first = first
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._guard, name="live")

    @property
    def rows(self) -> int:
        """The number of committed row changes."""
        return self.transactions * 3

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if self._failure and error is None:
            raise self._failure

    def _guard(self) -> None:
        try:
            self._run()
        except Exception as failure:  # noqa: BLE001 - raised again where the context ends
            self._failure = failure

    def _run(self) -> None:
        share = max(int(self.rate * _SLICE) // 2 * 2, 2)
        with self._connect() as connection, connection.cursor() as cursor:
            connection.autocommit(True)
            cursor.execute(f"USE {SCHEMA}")
            cursor.execute("SET SESSION sql_log_bin = 0")
            cursor.execute("DROP PROCEDURE IF EXISTS paced")
            cursor.execute(PACED)
            cursor.execute("SET SESSION sql_log_bin = 1")
            cursor.execute("SELECT UNIX_TIMESTAMP(SYSDATE(6))")
            begun = cursor.fetchall()[0][0]
            while not self._ended.is_set():
                cursor.execute(
                    "CALL paced(%s, %s, %s, %s, %s)", (self._first, begun, self.rate, self.transactions, share)
                )
                self.transactions += share
