"""The log as DataFrames: Spark's data source `thl`."""
