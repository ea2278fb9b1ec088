"""Every relative link in the README, the guides and CONTRIBUTING points to a file, and to a heading of it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    *(path for path in sorted(ROOT.glob("*.md")) if path.name != "CHANGELOG.md"),
    *sorted((ROOT / "docs").rglob("*.md")),
]

FENCED = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(
    r"\]\(\s*<?(?P<target>[^\s()<>]+)>?(?:\s+\"[^\"]*\")?\s*\)|(?:href|src)=\"(?P<html>[^\"]+)\""
)
HEADING = re.compile(r"^ {0,3}#{1,6} +(?P<title>.+?) *#*$", re.MULTILINE)
OWN_ANCHOR = re.compile(r"<a +(?:id|name)=\"([^\"]+)\"")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


def links(text: str) -> list[str]:
    prose = CODE.sub("", FENCED.sub("", text))
    return [found["target"] or found["html"] for found in LINK.finditer(prose)]


def anchors(text: str) -> set[str]:
    """The names that GitHub gives headings: lower case, no punctuation, hyphens for spaces; numbers for repeats."""
    prose = FENCED.sub("", text)
    names = set(OWN_ANCHOR.findall(prose))
    seen: Counter[str] = Counter()
    for found in HEADING.finditer(prose):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found["title"])
        name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        names.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names


def _has(target: Path, anchor: str) -> bool:
    return not anchor or (target.suffix == ".md" and anchor in anchors(target.read_text(encoding="utf-8")))


def broken(page: Path) -> list[str]:
    """The broken links of a page."""
    found = []
    for link in links(page.read_text(encoding="utf-8")):
        if ELSEWHERE.match(link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not (target.is_relative_to(ROOT) and target.exists() and _has(target, anchor)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_point_to_files_and_headings(page: Path) -> None:
    assert not broken(page)


def test_links_and_anchors_are_recognised() -> None:
    text = """# A `b` & [c](d.md), e!
## Same
## Same
```python
# no heading ](no-link)
```
`[no](link)` [yes](x.md#y) ![picture](p.svg) [titled](q.md "title") <a id="own"></a><img src="i.png">
"""
    assert links(text) == ["d.md", "x.md#y", "p.svg", "q.md", "i.png"]
    assert anchors(text) == {"a-b--c-e", "same", "same-1", "own"}


def test_a_broken_link_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(broken.__globals__, "ROOT", tmp_path)
    (tmp_path / "there.md").write_text("# Here\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Top\n[1](there.md#here) [2](#top) [3](there.md#gone) [4](gone.md) [5](#gone) [6](../x) [7](https://x.y/z#w)"
    )
    assert broken(page) == ["there.md#gone", "gone.md", "#gone", "../x"]
