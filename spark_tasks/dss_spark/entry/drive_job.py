"""What `spark-submit` runs: drive one job, in the session that it was submitted with.

It has a folder of its own, because Spark puts the folder of the program that it runs before all
others on the path. Its output is that of ``python -m dss_bulk``.
"""

import sys

from dss_spark.beginning import Beginning

if __name__ == "__main__":
    beginning = Beginning()
    # Loaded while the JVM starts the session.
    from dss_spark.driving import main

    sys.exit(main(beginning))
