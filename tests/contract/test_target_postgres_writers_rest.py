"""The rest of the contract with several writers: long, since what it asks is answered before rows are divided."""

from __future__ import annotations

import pytest

from tests.contract.target_ddl import *  # noqa: F403
from tests.contract.target_history import *  # noqa: F403
from tests.contract.target_load import *  # noqa: F403
from tests.contract.target_suite import applier  # noqa: F401
from tests.contract.target_transactions import *  # noqa: F403
from tests.contract.target_values import *  # noqa: F403
from tests.contract.target_ways_out import *  # noqa: F403
from tests.contract.test_target_postgres import database  # noqa: F401
from tests.contract.test_target_postgres_writers import place  # noqa: F401

pytestmark = pytest.mark.long
