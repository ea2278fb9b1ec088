"""Algorithm 1 of the paper with its stores, one row at a time, and with a corrected scan to the right."""

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
def _find_predecessor(times: Array, links: Array, last: int, time: float) -> int:
    """The last node that is not later, searched from the end of a linked list or from the top of a skip list."""
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
    """The number of levels of a node: each further level with a probability of 1/4."""
    bits, height = hash64(node), 1
    while height < levels and not bits & np.uint64(3):
        bits >>= np.uint64(2)
        height += 1
    return height


@kernel
def _insert_node(times: Array, links: Array, node: int, after: int) -> None:
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
def _remove_node(times: Array, links: Array, node: int) -> None:
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
def keep_one_by_one(times: Array, values: Array, omega: float, levels: int) -> int:
    """Offer rows of distinct times and values to a store with these link levels; returns how many it keeps."""
    size = len(times)
    # Node 0 is the head. Links: next, previous, then next on each level above.
    node_times, node_values = np.empty(size + 1), np.empty(size + 1)
    node_times[0], node_values[0] = -np.inf, 0.0
    links = np.full((levels + 1, size + 1), -1, np.int64)
    # Distances to the closest row: left above, left below, right above, right below.
    distance = np.full((4, size + 1), np.inf)
    count = last = 0
    for row in range(size):
        node = row + 1
        node_times[node], node_values[node] = times[row], values[row]
        after = _find_predecessor(node_times, links, last, node_times[node])
        predecessor = after
        for direction in range(2):
            own, opposite = 2 * direction, 2 - 2 * direction
            at = after if direction == 0 else links[0, predecessor]
            while at > 0 and (distance[own, node] == np.inf or distance[own + 1, node] == np.inf):
                gap = abs(node_times[node] - node_times[at])
                if gap > omega:
                    break
                further = links[1 - direction, at]
                above = node_values[at] > node_values[node]
                side, other = own + (not above), opposite + above
                distance[side, node] = min(distance[side, node], gap)
                distance[other, at] = min(distance[other, at], gap)
                if distance[0, at] + distance[2, at] <= omega and distance[1, at] + distance[3, at] <= omega:
                    if at == predecessor:
                        predecessor = links[1, at]
                    if at == last:
                        last = links[1, at]
                    _remove_node(node_times, links, at)
                    count -= 1
                at = further
        if distance[0, node] + distance[2, node] > omega or distance[1, node] + distance[3, node] > omega:
            _insert_node(node_times, links, node, predecessor)
            count += 1
            if predecessor == last:
                last = node
    return count
