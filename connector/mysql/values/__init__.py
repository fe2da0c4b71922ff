"""Values of rows and text results as Avro: numbers, times, text in all character sets, JSON."""
