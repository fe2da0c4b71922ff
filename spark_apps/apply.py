"""`spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:<version> spark_apps/apply.py --config FILE`.

Runs `thl apply` in the Spark that spark-submit starts, with its master, memory and files.
"""

from __future__ import annotations

import sys

from connector.cli import run

if __name__ == "__main__":
    sys.exit(run(["apply", "--submitted", *sys.argv[1:]]))
