"""The shop's transactions: small ones over several tables, as an application runs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from pymysql.cursors import Cursor

from connector.demo import rows

INSERT_CUSTOMER: Final = (
    "INSERT INTO customers (name,email,country,born,vip,tier,wants,balance,created,seen,notes,avatar,prefs)"
    " VALUES (" + ",".join(["%s"] * 13) + ")"
)
INSERT_PRODUCT: Final = "INSERT INTO products VALUES (" + ",".join(["%s"] * 14) + ")"


def buy(cursor: Cursor, random: Random, names: Mapping[str, str]) -> None:
    """Insert an order with its lines, and reduce the stock: three tables in one transaction."""
    cursor.execute(
        "INSERT INTO orders (customer_id,placed,state,total) VALUES (%s,%s,'new',%s)",
        (random.randrange(1, 1000), rows.random_time(random), f"{random.randrange(10**8) / 100:.2f}"),
    )
    order = cursor.lastrowid
    for line in range(1, random.randrange(2, 6)):
        product = random.randrange(1, 200)
        price = f"{random.randrange(10**9)}.{random.randrange(10**6):06d}"
        cursor.execute("INSERT INTO order_lines VALUES (%s,%s,%s,%s,%s)", (order, line, product, line, price))
        cursor.execute("UPDATE products SET stock = (stock + 16777215) %% 16777216 WHERE id = %s", (product,))


def pay(cursor: Cursor, random: Random, names: Mapping[str, str]) -> None:
    """Insert a payment, and mark its order as paid."""
    cursor.execute("SELECT id FROM orders WHERE state='new' ORDER BY id DESC LIMIT 1")
    found = cursor.fetchone()
    if found is None:
        return
    # Every twentieth key begins with NUL bytes or ends with them: BINARY is padded, the log strips the padding.
    key = random.randbytes(12) + bytes(4) if random.randrange(20) == 0 else random.randbytes(16)
    cursor.execute(
        f"INSERT INTO {names['payments']} (id,order_id,amount,reference,raw) VALUES (%s,%s,%s,%s,%s)",
        (key, found[0], "19.99", random.choice([0, 2**63 - 1, 2**63, 2**64 - 1]), random.randbytes(20)),
    )
    cursor.execute("UPDATE orders SET state='paid', version=version+1 WHERE id=%s", found)


def change(cursor: Cursor, random: Random, names: Mapping[str, str]) -> None:
    """Insert or update a customer."""
    if random.randrange(3) == 0:
        row = list(rows.customer(random, random.randrange(10**12)))
        cursor.execute(INSERT_CUSTOMER, row)
        return
    cursor.execute(
        "UPDATE customers SET balance = balance + 0.0001, seen = NOW(3), prefs = %s, notes = %s WHERE id = %s",
        (rows.document(random), rows.text(random, 10), random.randrange(1, 1000)),
    )


def browse(cursor: Cursor, random: Random, names: Mapping[str, str]) -> None:
    """Insert clicks, equal rows among them; update and delete some."""
    clicks = names["clicks"]
    cursor.executemany(
        f"INSERT INTO {clicks} (at,visitor,url,ms,extra) VALUES (%s,%s,%s,%s,%s)", [rows.click(random)] * 2
    )
    visitor = f"v{random.randrange(50):07d}"
    cursor.execute(f"UPDATE {clicks} SET ms = 3 WHERE visitor = %s AND ms = 1 LIMIT 3", (visitor,))
    cursor.execute(f"DELETE FROM {clicks} WHERE visitor = %s AND ms = 2 LIMIT 1", (visitor,))


def forget(cursor: Cursor, random: Random, names: Mapping[str, str]) -> None:
    """Delete an old order with its lines, and change a payment's key."""
    cursor.execute("SELECT MIN(id) FROM orders WHERE state='paid'")
    found = cursor.fetchone()
    if found is None or found[0] is None:
        return
    cursor.execute("DELETE FROM order_lines WHERE order_id=%s", found)
    cursor.execute("DELETE FROM orders WHERE id=%s", found)
    cursor.execute(f"UPDATE {names['payments']} SET id=%s WHERE order_id=%s LIMIT 1", (random.randbytes(16), found[0]))


def restock(cursor: Cursor, random: Random, names: Mapping[str, str]) -> None:
    """Update products, and replace one."""
    cursor.execute(
        "UPDATE products SET stock=%s, weight=%s, volume=%s, opens=%s WHERE id BETWEEN %s AND %s",
        (random.randrange(2**24), random.random(), random.random() * 1e9, "12:34:56.78", *_range(random)),
    )
    number = random.randrange(1, 200)
    cursor.execute("DELETE FROM products WHERE id=%s", (number,))
    cursor.execute(INSERT_PRODUCT, rows.product(random, number))


def _range(random: Random) -> tuple[int, int]:
    low = random.randrange(1, 190)
    return low, low + 5


Kind = Callable[[Cursor, Random, Mapping[str, str]], None]
KINDS: Final[tuple[Kind, ...]] = (buy, buy, pay, pay, change, browse, forget, restock)
