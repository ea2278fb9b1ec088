"""The condition of an alarm: SQL text, its syntax tree, and its values on columns.

- `nodes` is the syntax tree, `parsing` reads it from text;
- `evaluation` computes a tree on columns;
- `condition` is a comparison of such trees as one margin above a threshold.
"""
