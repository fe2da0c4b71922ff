"""MySQL's binary log, live or in files, into pieces of transactions. The only stage that knows MySQL."""
