"""Baseline of a submission: a driver that begins a session, says so, and ends."""

import sys

from pyspark.sql import SparkSession

session = SparkSession.builder.getOrCreate()
session.sparkContext.setLogLevel("WARN")
sys.stdout.write('{"state": "begun"}\n')
sys.stdout.flush()
session.stop()
