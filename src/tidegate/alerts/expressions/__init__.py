"""The condition of an alarm: SQL text, its syntax tree, and its values on columns.

| module | contents |
|---|---|
| `nodes` | the syntax tree |
| `parsing` | the tree of a text |
| `evaluation` | the values of a tree on columns |
| `condition` | comparisons as one margin above a threshold |
"""
