"""The data source `dss`: records of DSS as a DataFrame, a range at once or as they come.

    from dss_spark.source import DssSource

    spark.dataSource.register(DssSource)
    spark.read.format("dss").option("topic", "orders").load()

Invariant: of what is asked for every kept record comes once, in the order of its stream, or an
error; a record is never passed in silence. Reading changes nothing in DSS: it is no group, has no
progress, and keeps no state but what Spark has in its checkpoint.
"""
