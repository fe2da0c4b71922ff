"""The main job, shown: a shop on a real MySQL, through Kafka and Spark, into SQLite, with things killed on the way."""
