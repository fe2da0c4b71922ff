"""PostgreSQL's errors as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from connector.errors import PreflightError, TargetDiffers, TargetUnavailable, ValueNotRepresentable

# Refusals that pass by themselves: another session's lock, a full disk, too many connections.
_PASSING = (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure, errors.QueryCanceled)


@contextmanager
def translated() -> Iterator[None]:
    """Raise what PostgreSQL raises as an error of `connector.errors`."""
    try:
        yield
    except errors.IdleInTransactionSessionTimeout as error:
        # Stopped within a commit, and continued. Whether a newer applier took over meanwhile, the next claim tells.
        raise TargetUnavailable("the server ended our session, which did nothing inside a transaction") from error
    except _PASSING as error:
        raise TargetUnavailable(
            f"PostgreSQL: {_first(error)}", hint="Another session holds a lock for long."
        ) from error
    except errors.InsufficientPrivilege as error:
        raise PreflightError(
            f"PostgreSQL: {_first(error)}", hint="GRANT CREATE ON DATABASE … TO …: we make schemas and tables"
        ) from error
    except (errors.DataError, errors.ProgramLimitExceeded, errors.TooManyColumns) as error:
        raise ValueNotRepresentable(f"PostgreSQL: {_first(error)}") from error
    except (psycopg.IntegrityError, psycopg.ProgrammingError) as error:
        raise TargetDiffers(f"PostgreSQL: {_first(error)}") from error
    except psycopg.Error as error:
        raise TargetUnavailable(f"PostgreSQL: {_first(error)}") from error


def _first(error: psycopg.Error) -> str:
    """What it says, with the row where it names one."""
    said = error.diag.message_primary or str(error).strip() or type(error).__name__
    return f"{said} ({error.diag.message_detail})" if error.diag.message_detail else said
