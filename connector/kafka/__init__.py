"""The log on Kafka: clients, topics, transactions, readers, and the records of its topics."""
