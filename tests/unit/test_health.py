"""What probes are told: a loop that does not go round is stuck, a wait for a server is not, and ready is what works."""

from __future__ import annotations

from connector.health import BOUND, ProcessHealth
from tests.support.clock import Slept


def test_loop_that_does_not_go_round_is_stuck_until_it_does() -> None:
    clock = Slept()
    health = ProcessHealth(clock)
    loop = health.loop("reading")
    with loop.under_way():
        clock.sleep(BOUND)
        assert health.alive() == (True, "ok")
        clock.sleep(1)
        assert health.alive() == (False, "reading has not gone on for 601 s")
        loop.turn()
        assert health.alive().ok


def test_loop_that_is_not_under_way_is_not_stuck() -> None:
    clock = Slept()
    health = ProcessHealth(clock)
    with health.loop("reading").under_way():
        clock.sleep(1)
    clock.sleep(10 * BOUND)
    assert health.alive().ok


def test_time_of_a_wait_for_a_server_does_not_count_and_the_time_around_it_does() -> None:
    clock = Slept()
    health = ProcessHealth(clock)
    loop = health.loop("reading")
    with loop.under_way():
        clock.sleep(BOUND - 1)
        with loop.waits():
            clock.sleep(10 * BOUND)
            assert health.alive().ok
        assert health.alive().ok
        clock.sleep(2)
        assert health.alive() == (False, "reading has not gone on for 601 s")


def test_wait_before_a_loop_begins_does_not_begin_it() -> None:
    clock = Slept()
    health = ProcessHealth(clock)
    with health.loop("reading").waits():
        clock.sleep(1)
    clock.sleep(10 * BOUND)
    assert health.alive().ok


def test_one_stuck_loop_of_two_is_named_and_the_process_is_not_ready() -> None:
    clock = Slept()
    health = ProcessHealth(clock)
    health.enter("online", ready=True)
    reading = health.loop("reading")
    with reading.under_way(), health.loop("publishing").under_way():
        clock.sleep(BOUND + 1)
        reading.turn()
        assert health.alive() == health.ready() == (False, "publishing has not gone on for 601 s")


def test_process_is_ready_in_the_states_in_which_it_works() -> None:
    health = ProcessHealth(Slept())
    assert health.ready() == (False, "starting")
    health.enter("online", ready=True)
    assert health.ready() == (True, "online")
    health.enter("going back", ready=False)
    assert health.ready() == (False, "going back")
