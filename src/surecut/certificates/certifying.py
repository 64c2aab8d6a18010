"""What can be promised of a cut on rows that nobody has seen.

Four methods, from the strictest to the most modest:

- ``"holdout"``: rows that took part neither in training nor in tuning. Exact for accuracy, F₁, Jaccard, precision,
  recall and specificity; valid for every sample size and a little cautious for the others.
- ``"uniform"``: the validation rows themselves. Limits that hold for all thresholds at once, so that it does not
  matter how the threshold was chosen; also for the regret against the best threshold of this model.
- ``"theorem"``: the paper's Theorem 3. True, and as a rule vacuous: it is shown for comparison.
- ``"bootstrap"``: resampled rows, or whole groups of them. Right for large samples only, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from surecut.certificates.bootstrap import bootstrap_certificate
from surecut.certificates.certificate import BY_WORD, KEPT_ASIDE, Certificate, ConstraintPromise, check_confidence
from surecut.certificates.evidence import Asked, Evidence, evidence_of
from surecut.certificates.held_out import worded_for
from surecut.certificates.holdout import holdout_certificate
from surecut.certificates.promises import bootstrap_promises, holdout_promises, uniform_promises
from surecut.certificates.theorem import theorem_certificate
from surecut.certificates.top_k_certificate import TopKCertificate, top_k_certificate
from surecut.certificates.uniform import uniform_certificate
from surecut.certificates.weights import check_weights
from surecut.certificates.zone_certificate import (
    BandsCertificate,
    GroupsCertificate,
    bands_certificate,
    groups_certificate,
)
from surecut.decisions.bands import Bands
from surecut.decisions.cut import Cut
from surecut.decisions.grouped_bands import GroupedBands
from surecut.decisions.multilabel import MultilabelCut
from surecut.decisions.top_k import TopK

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from surecut.core.tally import ScoreTally

Method = Callable[[Evidence, Asked], Certificate]
Promises = Callable[[Evidence, Asked], tuple[ConstraintPromise, ...]]

METHODS: dict[str, tuple[Method, Promises | None]] = {
    "holdout": (holdout_certificate, holdout_promises),
    "uniform": (uniform_certificate, uniform_promises),
    "theorem": (theorem_certificate, None),  # which refuses constraints
    "bootstrap": (bootstrap_certificate, bootstrap_promises),
}
"""What each method says of a cut's value, and of its constraints."""

NOT_INDEPENDENT = (
    "rows of one group are not independent, which method='uniform' needs: use method='holdout' on held-out rows, or "
    "method='bootstrap', which resamples whole groups, or keep one row of each group"
)


class CertifyOptions(TypedDict, total=False):
    """Options that do not change the type of a certificate, for the overloads of `certify`."""

    tally: ScoreTally | Sequence[ScoreTally] | None
    by: ArrayLike | None
    sample_weight: ArrayLike | None
    weights: str | None
    groups: ArrayLike | None
    pos_label: Any
    confidence: float
    method: str
    held_out: bool | None
    missing: str
    resamples: int
    random_state: Any
    progress: bool | None


@overload
def certify(
    cut: GroupedBands, y_true: Any = ..., y_score: Any = ..., **options: Unpack[CertifyOptions]
) -> GroupsCertificate: ...
@overload
def certify(
    cut: Bands, y_true: Any = ..., y_score: Any = ..., **options: Unpack[CertifyOptions]
) -> BandsCertificate: ...
@overload
def certify(cut: TopK, y_true: Any = ..., y_score: Any = ..., **options: Unpack[CertifyOptions]) -> TopKCertificate: ...
@overload
def certify(
    cut: Cut | MultilabelCut, y_true: Any = ..., y_score: Any = ..., **options: Unpack[CertifyOptions]
) -> Certificate: ...
def certify(
    cut: Cut | MultilabelCut | Bands | GroupedBands | TopK,
    y_true: Any = None,
    y_score: Any = None,
    *,
    tally: ScoreTally | Sequence[ScoreTally] | None = None,
    by: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    weights: str | None = None,
    groups: ArrayLike | None = None,
    pos_label: Any = None,
    confidence: float = 0.95,
    method: str = "holdout",
    held_out: bool | None = None,
    missing: str = "error",
    resamples: int = 2000,
    random_state: Any = 0,
    progress: bool | None = None,
) -> Certificate | BandsCertificate | GroupsCertificate | TopKCertificate:
    """Limits for a cut's value on new rows; for bands, of what is in each zone; for a rule of k labels, of each label.

    Parameters
    ----------
    cut
        A cut, however it was found; of one label or of many. Or bands: their certificate, by ``"holdout"`` or
        ``"uniform"``, has the share of each zone, the NPV of the lowest, the PPV of the highest, conditions and gain.
        Or a rule of k labels a row: its certificate, by ``"holdout"`` or ``"bootstrap"`` from rows that did not tune
        it, has its value and each label's recall and precision.
    y_true, y_score
        Labels and scores by the model that will be deployed; or a `tally` of them. ``method="theorem"`` needs none. Of
        many labels: matrices, dense or sparse; columns, with `by`; or a list of the labels' tallies. Of a rule of k
        labels: matrices, or, with k = 1, a column of class labels and a matrix of scores.
    by
        Of a long table, where each row has one of the cut's labels: that label of each row. Of bands of groups: the
        group of each row.
    sample_weight
        Weights of the rows, of which `weights` says what they mean.
    weights
        ``"counts"``: a weight of 2 means the row twice; then all methods are valid. ``"importance"``: a weight says how
        much a row matters, such as a cost; then only ``"bootstrap"`` is valid. Has to be said for the other methods,
        unless all weights are 0 or 1, which only say which rows are there: costs in whole euros are no counts.
    groups
        Rows of one group (a patient, a day) depend on each other. ``"holdout"`` and ``"bootstrap"`` take the groups as
        what is independent; the value is still that of all rows, so that a group counts with each of its rows.
        ``"holdout"`` needs groups (and rows of many labels) in an order that has nothing to do with what they hold, and
        refuses those that come sorted.
    pos_label
        The label that counts as positive, if it is another than the cut's own.
    confidence
        The probability with which each limit holds, over the draw of the rows.
    method
        ``"holdout"`` for rows that did not tune the cut, ``"uniform"`` for any, also those that did, ``"theorem"`` for
        the paper's bound, ``"bootstrap"`` for large samples, weights, and groups.
    held_out
        Whether these rows took part neither in training nor in tuning. None finds out, by the sample of rows that the
        cut keeps, and refuses rows that share more scores with it than chance explains; and, where the method needs to
        know, scores so coarse that it cannot be told. True is your word that they did not, and overrules both; the
        certificate's assumptions say so. False says that they tuned the cut: ``"uniform"`` and ``"bootstrap"``, which
        corrects for it, are valid on them.
    missing
        What to do with rows without a label, a score or a weight, as in `tune_threshold` and `tune_thresholds`.
    resamples, random_state, progress
        For ``"bootstrap"``: how often, by which random numbers, and whether to show a progress bar (by default when it
        takes long and a person looks).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> def draw(n):
    ...     score = rng.random(n)
    ...     return rng.random(n) < score**2, score
    >>> from surecut import tune_threshold
    >>> cut = tune_threshold(*draw(1000))
    >>> print(certify(cut, *draw(2000)))
    With 95 % confidence the f1 of this cut on new rows is at least 0.6... (it is 0.6... on these 2,000 rows).
    """
    asked = Asked(confidence, method, weights, held_out, missing, resamples, random_state, progress)
    rows: dict[str, Any] = {"tally": tally, "by": by, "sample_weight": sample_weight, "groups": groups}
    found: Certificate | BandsCertificate | TopKCertificate
    if isinstance(cut, GroupedBands):
        check_promise(confidence, method, weights, held_out)
        return groups_certificate(cut, asked, y_true, y_score, **rows, pos_label=pos_label)
    if isinstance(cut, Bands):
        check_promise(confidence, method, weights, held_out)
        found = bands_certificate(cut, asked, y_true, y_score, **rows, pos_label=pos_label)
    elif isinstance(cut, TopK):
        check_promise(confidence, method, weights, held_out)
        found = top_k_certificate(cut, asked, y_true, y_score, **rows, pos_label=pos_label)
    else:
        found = certificate(cut, asked, y_true, y_score, **rows, pos_label=pos_label)
    if not held_out or method == "theorem":
        return found
    aside = worded_for(cut, KEPT_ASIDE)
    return replace(found, assumptions=(*(one for one in found.assumptions if one != aside), BY_WORD))


def certificate(
    cut: Cut | MultilabelCut, asked: Asked, y_true: Any = None, y_score: Any = None, **rows: Any
) -> Certificate:
    """The same for callers who know that rows are held out, because they held them out."""
    if not isinstance(cut, (Cut, MultilabelCut)):
        needed = "a cut, bands or a rule of k labels"
        rule = next((name for name in ("top_k_", "cut_") if hasattr(cut, name)), None)
        hint = "" if rule is None else f": pass classifier.{rule} and scores of held-out rows"
        raise TypeError(f"certify(cut, y_true, y_score) needs {needed} first, got {type(cut).__name__}{hint}")
    check_promise(asked.confidence, asked.method, asked.weights, asked.held_out, rows.get("groups") is not None)
    evidence = evidence_of(cut, asked, y_true, y_score, **rows)
    certified, promised = METHODS[asked.method]
    found = certified(evidence, asked)
    return replace(found, constraints=promised(evidence, asked)) if promised and cut.constraints else found


def check_promise(
    confidence: float, method: str, weights: str | None, held_out: bool | None, has_groups: bool = False
) -> None:
    """Raise where the options of a certificate are none, or exclude each other, before any rows are read."""
    if method not in tuple(METHODS):
        raise ValueError(f"method= must be one of {', '.join(METHODS)}, got {method!r}")
    check_confidence(confidence)
    if held_out not in (None, True, False):
        raise ValueError(f"held_out= must be True, False or None, got {held_out!r}")
    check_weights(weights)
    if has_groups and method == "uniform":
        raise ValueError(NOT_INDEPENDENT)
