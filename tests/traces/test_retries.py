import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from assets.traces.errors import DatasetError, PullStoppedError, TransientDatasetError
from assets.traces.hub_settings import HubSettings
from assets.traces.retries import PassingError, asked_wait_s, retrying

QUICK = HubSettings(
    retries=3, backoff_base_s=0.001, backoff_max_s=0.004, rate_limit_wait_max_s=0.05
)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def failing(*errors, then="done"):
    left = list(errors)

    def operation():
        if left:
            raise left.pop(0)
        return then

    return operation


def run(operation, stopped=None):
    return retrying(operation, QUICK, stopped or threading.Event())


def test_an_operation_that_recovers_is_retried():
    assert run(failing(PassingError("a"), PassingError("b"), PassingError("c"))) == "done"


def test_the_last_fault_is_raised_with_the_number_of_attempts():
    with pytest.raises(TransientDatasetError, match=r"^d \(4 attempts\)$"):
        run(failing(*[PassingError(name) for name in "abcd"]))


def test_a_fault_decides_what_is_raised_in_the_end_and_after_how_many_attempts():
    wrong = PassingError("wrong", final=DatasetError, max_attempts=2)
    with pytest.raises(DatasetError, match=r"^wrong \(2 attempts\)$") as raised:
        run(failing(wrong, wrong, wrong))
    assert type(raised.value) is DatasetError


def test_attempts_that_got_further_do_not_count():
    assert run(failing(*[PassingError("x", progressed=True)] * 20)) == "done"


def test_asked_waits_do_not_use_up_attempts_but_have_a_limit_of_their_own():
    assert run(failing(*[PassingError("x", wait_s=0.005)] * 8)) == "done"
    with pytest.raises(TransientDatasetError, match="it asks to wait"):
        run(failing(*[PassingError("x", wait_s=0.005)] * 20))


def test_stopping_ends_a_wait_at_once():
    stopped = threading.Event()
    threading.Timer(0.02, stopped.set).start()
    slow = HubSettings(rate_limit_wait_max_s=60)
    started = time.monotonic()
    with pytest.raises(PullStoppedError):
        retrying(failing(PassingError("x", wait_s=30)), slow, stopped)
    assert time.monotonic() - started < 5


def test_other_errors_are_not_retried():
    with pytest.raises(DatasetError, match="bad"):
        run(failing(DatasetError("bad")))


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry-After": "17"}, 17.0),
        ({"Retry-After": format_datetime(NOW + timedelta(seconds=9), usegmt=True)}, 9.0),
        ({"Retry-After": format_datetime(NOW - timedelta(days=1), usegmt=True)}, 0.0),
        ({"RateLimit": '"resolvers";r=0;t=55'}, 55.0),
        ({"Retry-After": "soon", "RateLimit": '"api"; r=0; t=3'}, 3.0),
        ({"Retry-After": "-5"}, None),
        ({"RateLimit": "nonsense"}, None),
        ({}, None),
    ],
)
def test_asked_waits_are_read_from_either_header(headers, wait_s):
    assert asked_wait_s(headers, NOW) == wait_s
