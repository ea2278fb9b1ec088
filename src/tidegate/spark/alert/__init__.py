"""Alarms on Spark.

| module | contents |
|---|---|
| `alert` | the function `tidegate.alert` |
| `arguments` | checks of its arguments |
| `bucket` | one bucket of the query, independent of Spark |
| `processor` | the stateful operator, and the function of a batch job |
| `inspection` | `tidegate.inspect` for the checkpoint of an alarm |
"""
