"""Conditions of `narrowing` in PostgreSQL's SQL."""

from __future__ import annotations

from connector.log.transaction.layout import Column
from connector.targets.narrowing import (
    Beyond,
    Blank,
    Digits,
    Has,
    Larger,
    Longer,
    Negative,
    NotOneOf,
    OtherSize,
    Outside,
    Tail,
    Unfit,
)
from connector.targets.postgres.literals import constant
from connector.targets.postgres.types import postgres_type


def condition(name: str, unfit: Unfit, column: Column) -> str:
    """An SQL condition that values which do not fit satisfy; NULL does not.

    Args:
        name: the column's current quoted name.
        unfit: the condition.
        column: the new column.
    """
    match unfit:
        case Outside(low, high):
            bounds = [f"{name} {sign} {bound}" for sign, bound in (("<", low), (">", high)) if bound is not None]
            return " OR ".join(bounds) or "false"
        case Negative():
            return f"{name} < 0"
        case Digits(count):
            return f"abs({name}) >= {10**count}"
        case Tail(places):
            if column.type.startswith("decimal"):
                return f"{name} <> trunc({name}, {places})"
            kind = postgres_type(column)
            return f"{name} <> {name}::{f'interval({places})' if kind == 'interval' else kind}"
        case Longer(count):
            return f"char_length({name}) > {count}"
        case Larger(count):
            return f"octet_length({name}) > {count}"
        case OtherSize(count):
            return f"octet_length({name}) <> {count}"
        case Blank():
            return f"right({name}, 1) = ' '"
        case Beyond(last):
            return f"{name} ~ '[\\U{last + 1:08X}-\\U0010FFFF]'"
        case NotOneOf(labels):
            return f"{name} <> ALL (ARRAY[{', '.join(map(constant, labels))}]::text[])"
        case Has(label):
            return f"strpos(',' || {name} || ',', {constant(f',{label},')}) > 0"
