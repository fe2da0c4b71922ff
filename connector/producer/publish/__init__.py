"""Fragments into Kafka, with the producer's position, in Kafka transactions."""
