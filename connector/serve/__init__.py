"""`thl serve`: a page, an API and metrics about one or many services, read from outside. It claims nothing.

- `services`: the configurations that were given, by service: one log, and its targets.
- `watcher`: reads a service again and again, and keeps the newest reading.
- `target_reads`: reads its targets side by side; one that does not answer keeps no other waiting.
- `source_ends`: what the log has of the source is as new as the last end of its binary log that it has passed.
- `history`: lags of the last hours in bounded memory.
- `history_file`: they and comparisons in a file, beyond one process.
- `incidents`: the last problems, with their remedies.
- `exposition`: the newest readings as metrics.
- `objects`: the newest readings as JSON.
- `charts`: the lags as SVG.
- `page`: the data and filters of the templates.
- `connections`: bounds the time of a request and the connections of one client.
- `guard`: access control: host names, token, sessions, CSRF.
- `jobs`: the commands of the buttons.
- `app`: the routes.
- `answers`: answers of the API.
- `actions`: the routes of the buttons.
- `server`: listens until it is stopped.
"""
