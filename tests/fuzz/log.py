"""`make fuzz`: invalid messages of the log, and files of a relay, with right checksums, through every reader.

Each is read, or is one of our errors with its place: no other exception, no crash, no second that a message takes. What
a reader does not bear ends the run, and is shown with the seed that makes it again.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time

from tests.fuzz.log_readers import read_message, read_record
from tests.fuzz.messages import changed, changed_record, message_seeds, record_seeds
from tests.fuzz.relay_files import changed_files, read_relay, relay_seeds

SLOW = 5.0  # seconds that one may take: the machine may do something else meanwhile


def main() -> None:
    """Fuzz and exit: 0 if the time is over, 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.log")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument(
        "--seed", type=int, default=random.randrange(1 << 32), help="of the first; the next is one more"
    )
    options = parser.parse_args()
    logging.disable()  # warnings of wrong checksums
    messages, records, relays = message_seeds(), record_seeds(), relay_seeds()
    end, seed, errors = time.monotonic() + options.seconds, options.seed, 0
    while (begun := time.monotonic()) < end:
        draw = random.Random(seed)
        what: object = None
        try:
            chosen = draw.random()
            if chosen < 0.6:
                what = changed(draw.choice(messages), draw.choice(messages), draw)
                errors += sum(1 for _ in read_message(what))
            elif chosen < 0.8:
                what = changed_files(draw.choice(relays), draw)
                errors += sum(1 for _ in read_relay(what))
            else:
                what = changed_record(draw.choice(records), draw.choice(records), draw)
                errors += sum(1 for _ in read_record(what))
        except BaseException:
            print(f"--seed {seed}: {what!r}", file=sys.stderr)
            raise
        if time.monotonic() - begun > SLOW:
            sys.exit(f"--seed {seed} takes {time.monotonic() - begun:.1f} s: {what!r}")
        seed += 1
    print(f"{seed - options.seed} messages, records and relays, {errors} errors, all ours")


if __name__ == "__main__":
    main()
