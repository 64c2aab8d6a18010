"""Decisions: what was tuned, as records that predict, print themselves and can be saved.

`cut` has `Cut`, one threshold; `multilabel` has `MultilabelCut`, one threshold per label; `stability` has what both
keep of resampled thresholds. What all kinds of decisions share is beside them: `saving` writes and reads versioned
documents, and lists their schemas; `consistency` compares their parts with each other; `sql` has the expressions of
thresholds in SQL dialects; `wording` has the text for people, `html` what a notebook shows. The public names are in
`surecut`.

To add a kind of decision: write a frozen dataclass in a file of its own, list its schema in `saving.SCHEMAS`, and let
its `save`, `load` and `to_dict` call `saving`.
"""
