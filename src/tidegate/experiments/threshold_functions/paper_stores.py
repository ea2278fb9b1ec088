"""Algorithm 1 on the stores of the paper, one row at a time. Its scan to the right is corrected."""

from __future__ import annotations

from typing import Final

import numpy as np

from tidegate.compiled import kernel
from tidegate.draws import hash64
from tidegate.types import Array

LINKED_LIST: Final = 1
SKIP_LIST: Final = 10
"""The number of link levels of each store."""


@kernel
def _place(times: Array, links: Array, last: int, time: float) -> int:
    """The last node that is not later, found from the end of a linked list or from the top of a skip list."""
    levels = links.shape[0] - 1
    if levels == 1:
        node = last
        while node > 0 and times[node] > time:
            node = links[1, node]
        return node
    node = 0
    for level in range(levels - 1, -1, -1):
        down = level + 1 if level else 0
        while links[down, node] >= 0 and times[links[down, node]] <= time:
            node = links[down, node]
    return node


@kernel
def _height(node: int, levels: int) -> int:
    drawn, height = hash64(node), 1
    while height < levels and not drawn & np.uint64(3):
        drawn >>= np.uint64(2)
        height += 1
    return height


@kernel
def _join(times: Array, links: Array, node: int, after: int) -> None:
    links[0, node], links[1, node] = links[0, after], after
    if links[0, after] >= 0:
        links[1, links[0, after]] = node
    links[0, after] = node
    levels = links.shape[0] - 1
    height, at = _height(node, levels), 0
    for down in range(levels, 1, -1):
        while links[down, at] >= 0 and times[links[down, at]] <= times[node]:
            at = links[down, at]
        if down <= height:
            links[down, node] = links[down, at]
            links[down, at] = node


@kernel
def _leave(times: Array, links: Array, node: int) -> None:
    links[0, links[1, node]] = links[0, node]
    if links[0, node] >= 0:
        links[1, links[0, node]] = links[1, node]
    levels = links.shape[0] - 1
    height, at = _height(node, levels), 0
    if height == 1:
        return
    for down in range(levels, 1, -1):
        while links[down, at] >= 0 and times[links[down, at]] < times[node]:
            at = links[down, at]
        if down <= height:
            links[down, at] = links[down, node]


@kernel
def one_by_one(times: Array, values: Array, omega: float, levels: int) -> int:
    """Offer rows of distinct times and values to a store with some link levels. Returns how many it keeps."""
    size = len(times)
    # Node 0 is the head. Links: next, previous, then next on each level above.
    when, worth = np.empty(size + 1), np.empty(size + 1)
    when[0], worth[0] = -np.inf, 0.0
    links = np.full((levels + 1, size + 1), -1, np.int64)
    near = np.full((4, size + 1), np.inf)  # left above, left below, right above, right below
    count = last = 0
    for row in range(size):
        node = row + 1
        when[node], worth[node] = times[row], values[row]
        after = _place(when, links, last, when[node])
        begins = after
        for way in range(2):
            mine, its = 2 * way, 2 - 2 * way
            at = after if way == 0 else links[0, begins]
            while at > 0 and (near[mine, node] == np.inf or near[mine + 1, node] == np.inf):
                apart = abs(when[node] - when[at])
                if apart > omega:
                    break
                further = links[1 - way, at]
                above = worth[at] > worth[node]
                side, other = mine + (not above), its + above
                near[side, node] = min(near[side, node], apart)
                near[other, at] = min(near[other, at], apart)
                if near[0, at] + near[2, at] <= omega and near[1, at] + near[3, at] <= omega:
                    if at == begins:
                        begins = links[1, at]
                    if at == last:
                        last = links[1, at]
                    _leave(when, links, at)
                    count -= 1
                at = further
        if near[0, node] + near[2, node] > omega or near[1, node] + near[3, node] > omega:
            _join(when, links, node, begins)
            count += 1
            if begins == last:
                last = node
    return count
