"""The sources of a producer: a live server, its archive, or files.

source         the seam: `Source`, `Stream`, `Load`; the start of a stream for a position
mysql          a live server
source_log     its binary log: the server's stream, and from the archive what the server has purged
unknown_alone  leaves out the transactions that the log has already, by their GTIDs
watched_stream a stream beside which the server is checked now and then
files          files of a binary log
"""
