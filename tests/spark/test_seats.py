"""No more processes than seats hold a part of a cache, and a process that ends makes room."""

from __future__ import annotations

import subprocess
import sys
import uuid

from tidegate.spark.seats import leave_seat, take_seat

OTHER = """
import sys
from tidegate.spark.seats import take_seat
print(take_seat(sys.argv[1], 2), flush=True)
input()
"""


def test_seats_are_taken_once_and_given_back() -> None:
    name = uuid.uuid4().hex

    def other() -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603 - our own words
            [sys.executable, "-c", OTHER, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def told(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    with other() as first, other() as second:
        assert {told(first), told(second)} == {"0", "1"}
        assert take_seat(name, 2) is None
        assert take_seat(uuid.uuid4().hex, 2) == 0
        first.communicate("")
        seat = take_seat(name, 2)
        assert seat is not None
        with other() as third:
            assert told(third) == "None"
            third.communicate("")
        leave_seat(name, seat)
        with other() as fourth:
            assert told(fourth) == str(seat)
            fourth.communicate("")
        second.communicate("")
