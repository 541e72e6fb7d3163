"""Routing in Spark SQL: which partition a record goes to, without running Python for each row.

Spark's ``xxhash64(key)`` has the bits of `dss_core.routing.key_hash`, as a signed number. With m =
P * K and h as unsigned, ``r = h mod m`` keeps all that the block router looks at, since P and K
divide m; so no product overflows, which ANSI mode would refuse::

    block    K * (r mod P/K) + (r div P) mod K
    range    (h * P) >> 64, by halves

Invariant: the same as `dss_core.routing.partition_of`, for every hash. A record without a key is
routed by its number, so each attempt of a task sends it to the same partition. Text only: this
module does not need Spark.
"""

from dss_bulk.target import Target
from dss_core.routing import Router

HASH = "xxhash64(key)"
_LOW = (1 << 32) - 1


def partition_sql(target: Target, hashed: str, number: str) -> str:
    """The partition of a record, as an expression.

    Args:
        target: the topic's routing.
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
