"""`python -m tests.integration.thl`: the `thl` command, whether its script is installed or not."""

from connector.cli import main

main()
