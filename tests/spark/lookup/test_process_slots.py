"""No more processes than slots hold a part of a cache, and a process that ends releases its slot."""

from __future__ import annotations

import subprocess
import sys
import uuid

from tidegate.spark.lookup.process_slots import acquire_slot, release_slot

OTHER = """
import sys
from tidegate.spark.lookup.process_slots import acquire_slot
print(acquire_slot(sys.argv[1], 2), flush=True)
input()
"""


def test_slots_are_acquired_once_and_released() -> None:
    name = uuid.uuid4().hex

    def other() -> subprocess.Popen[str]:
        return subprocess.Popen(  # noqa: S603 - our own code
            [sys.executable, "-c", OTHER, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def printed(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    with other() as first, other() as second:
        assert {printed(first), printed(second)} == {"0", "1"}
        assert acquire_slot(name, 2) is None
        assert acquire_slot(uuid.uuid4().hex, 2) == 0
        first.communicate("")
        slot = acquire_slot(name, 2)
        assert slot is not None
        with other() as third:
            assert printed(third) == "None"
            third.communicate("")
        release_slot(name, slot)
        with other() as fourth:
            assert printed(fourth) == str(slot)
            fourth.communicate("")
        second.communicate("")
