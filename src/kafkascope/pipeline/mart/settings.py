"""A session in, the same set for little data while the block runs: then planning and compiling cost more than the work,
and Spark's defaults are for much."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Below this, everything is read in a few tasks of a second or so.
LITTLE_BYTES = 64 << 20
_FOR_LITTLE = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_PARTITIONS = "spark.sql.shuffle.partitions"
_FEW = 2


@contextmanager
def set_for(spark: "SparkSession", size: int) -> Iterator[None]:
    """`size` is that of what is read. The session is as it was afterwards."""
    if size >= LITTLE_BYTES:
        yield
        return
    wanted = dict(_FOR_LITTLE)
    if int(spark.conf.get(_PARTITIONS) or _FEW) > _FEW:
        wanted[_PARTITIONS] = str(_FEW)
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)
