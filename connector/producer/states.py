"""The states of a producer, and the transitions between them."""

from __future__ import annotations

from enum import Enum
from typing import Final


class ProducerState(Enum):
    """The state of a producer; each but OFFLINE may be followed by FENCED, and by OFFLINE after an error."""

    OFFLINE = "offline"  # before the start and after the end; has no connections
    GOING_ONLINE = "going online"  # executes the six steps of `GoingOnline`
    LOADING = "loading"  # publishes the beginning of an initial load
    ONLINE = "online"  # publishes the source's log
    GOING_BACK = "going back"  # has lost the source: waits for it, and continues at the log's end
    ENDING = "ending"  # publishes the items read so far, and reads no more
    FENCED = "fenced"  # a newer producer has taken over

    def followed_by(self, state: ProducerState) -> ProducerState:
        """The next state.

        Raises:
            RuntimeError: this state is never followed by it.
        """
        if self.value not in _BEFORE[state.value]:
            raise RuntimeError(f"a producer does not go from {self.value} to {state.value}")
        return state


# State → the states before it. FENCED is entered from everywhere, without a question.
_BEFORE: Final = {
    "offline": ("going online", "loading", "online", "going back", "ending"),
    "going online": ("offline", "going online", "loading", "online", "going back", "ending"),
    "loading": ("going online",),
    "online": ("going online", "loading", "going back"),
    "going back": ("online",),
    "ending": ("loading", "online", "going back"),
    "fenced": (),
}
