"""Finding alarms as rows arrive.

- `alarm_finder` serves one join, `keyed_finder` many keys at once;
- `combinations` is the compiled search, in the order that `search_plan` chooses.
"""
