"""Which streams of an alarm may omit rows: proofs about the shape of its condition.

- `certificate` is the entry: it examines each input of a condition and reports what is known of it;
- `proof` proves a shape, by rules of composition (`curvature`) or by bounds of derivatives (`enclosure`) on small
  boxes (`subdivision`);
- `intervals` is the interval arithmetic, and `functions` the bounds of each function that a condition may call;
- `grid` looks for counterexamples on points, and `overflow` for ranges in which 64-bit floats do not overflow.
"""
