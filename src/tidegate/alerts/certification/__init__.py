"""Certification: which streams of an alarm may omit rows, by proofs about the shape of its condition.

| module | contents |
|---|---|
| `certificate` | `certify`, which examines each input of a condition, and its report |
| `proof` | proofs of a shape, by `curvature` or by `enclosure` on small boxes (`subdivision`) |
| `curvature` | shapes by rules of composition |
| `enclosure` | bounds of values and derivatives over boxes |
| `intervals` | interval arithmetic |
| `functions` | bounds of each function that a condition may call |
| `grid` | search for counterexamples on points |
| `overflow` | ranges in which 64-bit floats do not overflow |
"""
