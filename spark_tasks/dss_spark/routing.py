"""Routing in the SQL of Spark: which partition a record goes to, without a line of Python a row.

``xxhash64(key)`` of Spark has the bits of `dss_core.routing.key_hash`, as a signed number. With m
= P * K and h as unsigned, ``r = h mod m`` keeps all that the block router looks at, since P and K
divide m; so no product overflows, which ANSI mode would refuse::

    block    K * (r mod P/K) + (r div P) mod K
    range    (h * P) >> 64, by halves

Invariant: what `dss_core.routing.partition_of` gives, for every hash. A record without a key goes
where its number says, so each attempt of a task sends it to the same place. Text alone: this module
needs no Spark.
"""

from dss_bulk.target import Target
from dss_core.routing import Router

HASH = "xxhash64(key)"
_LOW = (1 << 32) - 1


def partition_sql(target: Target, hashed: str, number: str) -> str:
    """The partition of a record, as an expression.

    Args:
        target: how the topic is routed.
        hashed: expression of the hash of the key, null where there is no key.
        number: expression of a number of the record, for records without a key.
    """
    keyless = f"pmod({number}, {target.partitions}L)"
    return f"CAST(IF(key IS NULL, {keyless}, {_keyed(target, hashed)}) AS INT)"


def _keyed(target: Target, hashed: str) -> str:
    partitions, factor = target.partitions, target.factor
    if target.router is Router.RANGE:
        high = f"shiftrightunsigned({hashed}, 32) * {partitions}L"
        low = f"shiftrightunsigned(({hashed} & {_LOW}L) * {partitions}L, 32)"
        return f"shiftrightunsigned({high} + {low}, 32)"
    modulus = partitions * factor
    # A negative number stands for itself plus 2^64.
    wrapped = f"IF({hashed} < 0, {(1 << 64) % modulus}L, 0L)"
    rest = f"pmod(pmod({hashed}, {modulus}L) + {wrapped}, {modulus}L)"
    base = partitions // factor
    return f"{factor}L * pmod({rest}, {base}L) + pmod({rest} div {partitions}L, {factor}L)"
