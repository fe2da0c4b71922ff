"""Fragments from Kafka, through Spark, into whole events and net operations per key."""
