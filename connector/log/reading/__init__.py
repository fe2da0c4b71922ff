"""The log as a reader meets it: fragment rules, finished events in order, whole or by shard, and search."""
