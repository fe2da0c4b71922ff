"""Row changes as Debezium's messages on Kafka."""
