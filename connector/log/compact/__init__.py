"""Whole events compacted to net changes per key: run by the applier and by Spark's tasks alike."""
