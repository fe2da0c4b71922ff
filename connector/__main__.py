"""`python -m connector` is `thl`."""

import sys

from connector.cli import main

sys.exit(main())
