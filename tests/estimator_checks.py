"""Estimator checks of scikit-learn that no binary classifier passes, in the versions where it is so."""

from __future__ import annotations

import sklearn
from packaging.version import Version

BROKEN_CHECKS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "before 1.7 it takes the class of the first row as negative, "
    "and shuffles the rows of one of the two samples that it compares"
    for kind in ("dense", "sparse")
    if Version(sklearn.__version__) < Version("1.7")
}
