"""Every Python example in the README and the guides runs.

The blocks of one file run in order and share a namespace. A block opened by ```` ```python spark ````
finds a session under the name ``spark``. A block right below ``<!-- no-run: reason -->`` does not run.
"""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
KINDS = ("python", "python spark")

BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<kind>py[^\n]*)\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
NO_RUN = re.compile(r"<!-- no-run(?P<reason>[^\n]*)-->\s*\Z")


class Block(NamedTuple):
    kind: str
    code: str
    line: int


def blocks(guide: Path) -> Iterator[Block]:
    text = guide.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code"))
        where = f"{guide.relative_to(ROOT)}:{line}"
        if found["kind"] not in KINDS:
            raise ValueError(f"{where}: block of kind {found['kind']!r}; write one of {KINDS}")
        if exempt := NO_RUN.search(text, 0, found.start()):
            if not re.match(r": *\w", exempt["reason"]):
                raise ValueError(f"{where}: block exempt without a reason; write <!-- no-run: reason -->")
            continue
        yield Block(found["kind"], textwrap.dedent(found["code"]), line)


def needs_spark(guide: Path) -> bool:
    return any(block.kind == "python spark" for block in blocks(guide))


@pytest.mark.parametrize(
    "guide",
    [
        pytest.param(
            guide,
            id=guide.relative_to(ROOT).as_posix(),
            marks=[pytest.mark.spark] if needs_spark(guide) else [],
        )
        for guide in GUIDES
        if any(blocks(guide))
    ],
)
def test_examples_run(
    guide: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    if needs_spark(guide):
        namespace["spark"] = request.getfixturevalue("spark")
    for block in blocks(guide):
        # The empty lines in front let a traceback point into the guide.
        exec(compile("\n" * block.line + block.code, guide, "exec"), namespace)  # noqa: S102
