"""`python -m connector` is `thl`."""

from connector.cli import main

main()
