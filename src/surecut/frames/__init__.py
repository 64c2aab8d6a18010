"""Rows where they are: in frames, files and engines.

`tuning` is what people call. Two sources feed one search: `batches` (Arrow batches, opened by `readers`) and `grouped`
(GROUP BY in the engine); `by_group` is for long tables of many groups. `columns` says which column plays which part,
`text_numbers` how files write numbers, `engine_tables` puts a small table beside a large one. The public names are in
`surecut`.
"""
