"""MySQL's binary log as a Transaction History Log on Kafka, applied to other databases by Spark."""
