"""How rows are sent to buckets and back.

| module | contents |
|---|---|
| `columns` | the hidden columns of packed rows, their order and their transport types |
| `type_encoding` | types that Spark cannot send to Python, encoded as others |
| `arrow_types` | the Arrow types of Spark's types |
| `arrow_bytes` | tables as bytes, and back |
| `buckets` | how keys are distributed to buckets, and buckets to partitions |
| `row_packer` | packs the rows of a DataFrame before the shuffle |
| `packed_rows` | unpacks arrivals in a bucket, packs results, and unpacks them after it |
"""
