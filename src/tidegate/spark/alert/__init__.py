"""Alarms on Spark.

| module | contents |
|---|---|
| `alert` | the function `tidegate.alert` |
| `arguments` | checks of its arguments |
| `processor` | the stateful operator, and the function of a batch job |
| `inspection` | `tidegate.inspect` for the checkpoint of an alarm |
"""
