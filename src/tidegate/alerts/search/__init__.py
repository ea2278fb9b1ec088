"""Search for alarms as rows arrive.

| module | contents |
|---|---|
| `alarm_search` | the search itself: arrivals against the rows in given stores |
| `alarm_finder` | the alarms of one join |
| `keyed_finder` | the alarms of many keys at once |
| `combinations` | the compiled search for combinations of rows |
| `search_plan` | the order in which the search goes through the streams |
"""
