"""Which rows may certify a cut, by which method; and the errors where rows may not, or where that cannot be told.

- The model must not have been trained on the rows, whatever the method: its scores of them are too good.
- ``"holdout"`` also needs rows that did not tune the cut, not even some of them.
- ``"uniform"`` takes any rows, also those that tuned the cut, since its limits hold for all thresholds at once.
- ``"bootstrap"`` corrects for the choice of the threshold on the validation rows themselves, and takes rows that did
  not; it has nothing for a mix of the two.
- A rule of k labels a row has many numbers, and neither limits for all of them at once nor a correction: it is
  certified on rows that did not tune it.
- A cut of pooled out-of-fold scores has a model that was trained on all of its validation rows: they certify nothing.

Rows are recognised by their checksum, where they are all the same, and by the sample that a cut keeps (`overlap`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from surecut.certificates.rows import HeldOutRows
from surecut.decisions.bands import Bands
from surecut.decisions.top_k import TopK
from surecut.overlap import TRAINING, VALIDATION, Overlap, overlap

if TYPE_CHECKING:
    from surecut.core.tally import ScoreTally
    from surecut.decisions.cut import Cut
    from surecut.decisions.multilabel import MultilabelCut

    Decision = Cut | MultilabelCut | Bands | TopK

    NewRows = Mapping[int, ScoreTally | HeldOutRows]
    """Rows to compare with the seen ones, or their tally, by position of the label; one label is label 0."""

TRAINED = (
    "these rows trained the model, all or many of them: its scores of them are too good, and nothing can be promised "
    "from them. Certify on rows that took part neither in training nor in tuning, or fit with cv=1/3 and confidence=; "
    "if these rows took part in neither, pass held_out=True"
)

POOLED = (
    "these scores were pooled from folds, each with a model of its own, and the model that predicts was trained on all "
    "of these rows: nothing can be promised from them. Certify on rows that were kept from fit, or fit with cv=1/3 and "
    "confidence="
)

IDENTICAL = (
    "these are the validation rows of the cut: their value is too good, and {method!r} would promise too much. Use "
    "{uniform}rows that were kept aside"
)

PARTLY = (
    "some of these rows tuned the cut: they share more scores with the validation rows than chance explains. Use "
    "{uniform}rows that were kept aside; if these rows were, pass held_out=True"
)

UNDETERMINED = (
    "it cannot be determined whether these rows took part in {what}: they are few, or their scores so coarse that "
    "other rows would look alike. If they took part neither in training nor in tuning, say so: held_out=True{otherwise}"
)


def rows_tuned(cut: Decision, rows: NewRows) -> Overlap:
    """Whether rows are among those that tuned the cut."""
    return _with_role(cut, rows, VALIDATION)


def rows_trained(cut: Decision, rows: NewRows) -> Overlap:
    """Whether they are among those that trained the cut's model."""
    return _with_role(cut, rows, TRAINING)


def require_valid_rows(
    cut: Decision,
    rows: NewRows,
    identical: bool,
    method: str,
    held_out: bool | None,
) -> bool:
    """Raise where rows may not certify a cut by a method; return whether they are those that tuned it.

    Parameters
    ----------
    cut
        The cut, with samples of the rows that it has seen.
    rows
        The new rows, or their tallies, by position of the label; one label is label 0. Some labels will do.
    identical
        Whether their checksum says that they are the validation rows.
    method
        The method of `certify`.
    held_out
        The caller's word that they took part neither in training nor in tuning (True), or that they tuned the cut
        (False); None where it has to be found out.
    """
    if held_out:
        return False
    tuned_here = identical or held_out is False
    if cut.out_of_fold and tuned_here:
        raise ValueError(POOLED)
    # Validation rows of a cut that is not out-of-fold were kept from training.
    trained = Overlap.NONE if identical else rows_trained(cut, rows)
    if trained is Overlap.SHARED:
        raise ValueError(worded_for(cut, TRAINED))
    has_uniform = not isinstance(cut, TopK)
    if tuned_here and (method == "holdout" or not has_uniform):
        uniform = "method='uniform', which is valid on them, or " if has_uniform else ""
        raise ValueError(worded_for(cut, IDENTICAL.format(method=method, uniform=uniform)))
    tuned = Overlap.NONE
    if cut.out_of_fold or (method != "uniform" and not tuned_here):
        tuned = rows_tuned(cut, rows)
        if tuned is Overlap.SHARED:
            uniform = "method='uniform', which is valid on any rows that did not train the model, or "
            partly = PARTLY.format(uniform=uniform if has_uniform else "")
            raise ValueError(worded_for(cut, POOLED if cut.out_of_fold else partly))
    if held_out is None and Overlap.UNKNOWN in (trained, tuned):
        what = "training" if tuned is not Overlap.UNKNOWN else "tuning"
        is_lost = cut.out_of_fold or not has_uniform
        otherwise = "" if is_lost else "; if they tuned the cut, use method='uniform' and held_out=False"
        raise ValueError(worded_for(cut, UNDETERMINED.format(what=what, otherwise=otherwise)))
    return tuned_here


def worded_for(decision: Decision, sentence: str) -> str:
    """A sentence on a cut as one on the decision.

    >>> from surecut import tune_bands
    >>> worded_for(tune_bands([0, 1], [0.1, 0.9], zones=["a", "b"], gains={"b": (-1, 1)}), "these rows tuned the cut")
    'these rows tuned the bands'
    """
    name = "the bands" if isinstance(decision, Bands) else "the rule" if isinstance(decision, TopK) else "the cut"
    return sentence.replace("the cut", name)


def _with_role(cut: Decision, rows: NewRows, role: str) -> Overlap:
    found = {
        overlap(
            sample,
            {label: new.around(sample) if isinstance(new, HeldOutRows) else new for label, new in rows.items()},
        )
        for sample in cut.seen
        if sample.role == role
    }
    return next((one for one in (Overlap.SHARED, Overlap.UNKNOWN) if one in found), Overlap.NONE)
