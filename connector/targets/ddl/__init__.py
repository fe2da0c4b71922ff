"""A DDL statement of the source as operations on a target's tables."""
