"""Bounded caches of a relation's rows for lookups, and a simulation of one over recorded references.

| module | contents |
|---|---|
| `simulate` | `simulate_cache`: recorded references, one at a time |
| `forecast` | the part of it for references that follow a given process |
| `lookup_cache` | `LookupCache`: references in batches, as a stream brings them |
| `policies` | the scores by which a cache chooses the rows to keep |
| `process_ranking` | the scores where references follow a process that is learned |
| `store` | the cached rows in Arrow columns, with an index |
| `key_codes` | keys of any type as 64-bit integers |
"""

from tidegate.caching.lookup_cache import LookupCache
from tidegate.caching.simulate import CachePolicy, CacheReport, simulate_cache

__all__ = ["CachePolicy", "CacheReport", "LookupCache", "simulate_cache"]
