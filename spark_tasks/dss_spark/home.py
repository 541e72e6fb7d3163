"""A Spark home for drivers on a local master: Spark's own, without its packed PySpark.

Spark puts ``python/lib/pyspark.zip`` of its home before everything else on the path of its Python
processes. Nothing in it is compiled, so the driver, and each process that plans or commits a write,
compiles what it loads: half a second of processor time. Without that file PySpark comes from where
this process has it, and Spark does not search all packages for data sources before the first one is
registered.

Invariant: it is the same Spark and the same PySpark; only files in the driver's folder are made.
"""

import importlib.util
from pathlib import Path

LINKED = ("bin", "conf", "jars")
"""What `spark-submit` needs of a home."""


def home_of(pyspark: Path, folder: Path) -> Path:
    """A home below the folder; PySpark's own home if only that has what its Python needs."""
    if importlib.util.find_spec("py4j") is None:
        return pyspark
    home = folder / "home"
    home.mkdir()
    for name in LINKED:
        if (pyspark / name).exists():
            (home / name).symlink_to(pyspark / name)
    return home
