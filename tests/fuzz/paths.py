"""The ways through surecut from rows to a cut, each as one entry of `PATHS`."""

from __future__ import annotations

import math
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cache, cached_property, partial
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from fuzz.judging import ROUNDING, TIE, Found, Problem, Verdict
from fuzz.measures import Condition, Measure
from fuzz.samples import ANY, Wanted, draw_labels, draw_scores, draw_size, draw_weights
from fuzz.settings import Settings, draw_settings, shrunk
from oracle import Oracle
from surecut import InfeasibleError, ScoreSketch, ScoreTally, tune_frame, tune_threshold, tune_thresholds
from surecut.core import settings
from surecut.tuning.labels import tune_tallies

Complaint = tuple[str, str]
"""A kind of difference, and what is different."""


class SkippedError(Exception):
    """A request that says nothing about a path: the metric grows with errors on these rows, or is not for it."""


@dataclass
class Data:
    """Rows, of one label (1-d), of many (2-d, absent scores are −inf), or of groups; and how they are to be tuned."""

    labels: Any
    scores: Any
    weights: Any = None
    groups: Any = None
    family: str = ""
    weighing: str = "none"
    settings: Settings = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def absent(self) -> float | None:
        return -math.inf if self.options.get("sparse") else None

    @cached_property
    def whole(self) -> Problem:
        """All rows as one problem; those of many labels are pooled."""
        weights = self.weights
        if self.scores.ndim == 2 and weights is not None:
            weights = np.repeat(weights, self.scores.shape[1])
        prior = self.options.get("prior")
        return Problem(self.labels.ravel(), self.scores.ravel(), weights, absent=self.absent, prior=prior)

    @cached_property
    def parts(self) -> list[Problem]:
        """One problem per label, or per group."""
        if self.groups is not None:
            return [
                Problem(self.labels[rows], self.scores[rows], None if self.weights is None else self.weights[rows])
                for rows in (self.groups == group for group in np.unique(self.groups))
            ]
        columns = range(self.scores.shape[1])
        return [Problem(self.labels[:, i], self.scores[:, i], self.weights, absent=self.absent) for i in columns]

    def without(self, rows: Any) -> Data:
        """The same without some rows, for shrinking."""
        kept = np.setdiff1d(np.arange(len(self.labels)), rows)
        return replace(
            self,
            labels=self.labels[kept],
            scores=self.scores[kept],
            weights=None if self.weights is None else self.weights[kept],
            groups=None if self.groups is None else self.groups[kept],
        )


Call = Callable[[Data, Measure, tuple[Condition, ...]], Any]
Draw = Callable[[np.random.Generator, Wanted], Data]

SIZES = {size.name for size in fields(settings.Settings)}


@dataclass(frozen=True)
class Path:
    """How data are drawn, and how an answer is had and judged.

    `variants` are settings and options of which one value each is drawn, those more often that are listed more often;
    `without` are the families of scores that the path cannot hold. `share` is how often the path is taken in a run of
    all paths: less often where it is slow, as an `engine` is.
    """

    draw: Draw
    check: Callable[[Data, Measure, tuple[Condition, ...]], Complaint | None]
    code: Callable[[Data], str]
    share: float = 1.0
    variants: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    weighted: bool = True
    both_classes_only: bool = False
    constrained: bool = True
    bounded_only: bool = False
    on_hull_only: bool = False
    finite_only: bool = False
    engine: bool = False

    def drawn(self, random: np.random.Generator, wanted: Wanted = ANY) -> Data:
        """Rows for this path, in one of its variants."""
        data = self.draw(random, wanted)
        for name, values in self.variants.items():
            value = wanted.variant[name] if name in wanted.variant else values[int(random.integers(len(values)))]
            (data.settings if name in SIZES else data.options)[name] = value
        return data

    def refuses(self, measure: Measure) -> bool:
        """Whether the path is not for this metric."""
        return (
            (self.bounded_only and not measure.bounded)
            or (self.on_hull_only and not measure.on_hull)
            or (self.finite_only and not measure.finite)
        )


# One cut of all rows


def draw_rows(*parts: str, without: tuple[str, ...] = (), most: int = 60) -> Draw:
    def draw(random: np.random.Generator, wanted: Wanted) -> Data:
        size = draw_size(random, most, wanted)
        family, scores = draw_scores(random, size, without, wanted)
        kind, weights = draw_weights(random, size, wanted=wanted)
        labels = draw_labels(random, scores, wanted)
        return Data(labels, scores, weights, None, family, kind, draw_settings(random, *parts))

    return draw


def found_of(cut: Any, scores: Any, *, interval: bool = True) -> Found:
    confusion = cut.confusion
    cells = (confusion.tp, confusion.fp, confusion.fn, confusion.tn)
    return Found(cut.threshold, cut.value, cut.predict(scores), cut.interval if interval else None, cells)


def checked_rows(call: Call) -> Callable[[Data, Measure, tuple[Condition, ...]], Complaint | None]:
    def check(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Complaint | None:
        require_monotone(measure, data.whole)
        verdict = Verdict(data.whole, measure, conditions)
        try:
            cut = call(data, measure, conditions)
        except ValueError as error:
            return error_complaint(error, verdict, conditions)
        return verdict.complaint(found_of(cut, data.scores)) or own_dtype_complaint(cut, data.scores)

    return check


def require_monotone(measure: Measure, *problems: Problem) -> None:
    for problem in problems:
        if not measure.is_monotone_at(problem.float_prior):
            raise SkippedError


def error_complaint(error: ValueError, verdict: Verdict, conditions: tuple[Condition, ...]) -> Complaint | None:
    """Whether an error is what the oracle expects."""
    if verdict.refused:
        return None
    infeasible = isinstance(error, InfeasibleError)
    if verdict.may_raise and (infeasible == bool(conditions) or (conditions and not verdict.meets_none)):
        return None
    said = f"{type(error).__name__}: {error}"
    if verdict.may_raise:
        return "wrong error", f"{said}; expected {'InfeasibleError' if conditions else 'a plain ValueError'}"
    return "refused", f"{said}; best is {verdict._best()}"


def own_dtype_complaint(cut: Any, scores: Any) -> Complaint | None:
    """Whether the threshold cuts alike in the scores' own dtype."""
    if scores.dtype.kind == "f" and cut.threshold < math.inf:
        own = scores >= scores.dtype.type(cut.threshold)
        if not np.array_equal(own, cut.predict(scores)):
            return "predictions", f"the threshold {cut.threshold!r} cuts differently in {scores.dtype}"
    return None


def constraints_of(conditions: tuple[Condition, ...]) -> Any:
    return [condition.constraint for condition in conditions] or None


def by_arrays(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Any:
    return tune_threshold(
        data.labels,
        data.scores,
        metric=measure.metric,
        sample_weight=data.weights,
        constraint=constraints_of(conditions),
    )


def tally_of(data: Data) -> ScoreTally:
    return ScoreTally.from_scores(data.labels, data.scores, sample_weight=data.weights)


def by_tally(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Any:
    return tally_of(data).best_cut(measure.metric, constraints_of(conditions))


def by_sum_of_tallies(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Any:
    pieces = [slice(i, None, 3) for i in range(min(3, len(data.labels)))]
    weights = [None if data.weights is None else data.weights[piece] for piece in pieces]
    tallies = [
        ScoreTally.from_scores(data.labels[piece], data.scores[piece], sample_weight=weight)
        for piece, weight in zip(pieces, weights, strict=True)
        if weight is None or weight.any()
    ]
    return sum(tallies).best_cut(measure.metric, constraints_of(conditions))


def by_hull(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Any:
    return tally_of(data).hull.best_cut(measure.metric)


def draw_prior(random: np.random.Generator, wanted: Wanted, *, hull: bool) -> Data:
    data = draw_rows()(random, wanted)
    data.options["hull"] = hull
    data.options["prior"] = float(random.choice([0.001, 0.1, 0.3, 0.5, 0.9, 0.999]))
    return data


def check_prior(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Complaint | None:
    if not (data.whole.positives and data.whole.negatives):
        raise SkippedError

    def call(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Any:
        tally = tally_of(data).with_prior(data.options["prior"])
        if data.options["hull"]:
            return tally.hull.best_cut(measure.metric)
        return tally.best_cut(measure.metric, constraints_of(conditions))

    return checked_rows(call)(data, measure, conditions)


def draw_sketch(random: np.random.Generator, wanted: Wanted) -> Data:
    data = draw_rows()(random, wanted)
    data.options["bits"] = int(random.choice([1, 1, 2, 4, 7]))
    data.options["pieces"] = int(random.integers(1, 4))
    return data


def check_sketch(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Complaint | None:
    """The bracket holds the best value of all cuts; the cut is the best edge; infeasible is what no cut meets."""
    require_monotone(measure, data.whole)
    verdict = Verdict(data.whole, measure, conditions)
    sketch = ScoreSketch(data.options["bits"])
    for i in range(data.options["pieces"]):
        piece = slice(i, None, data.options["pieces"])
        weights = None if data.weights is None else data.weights[piece]
        if weights is None or weights.any():
            sketch.update(data.labels[piece], data.scores[piece], weights)
    lowest = np.array([attempt.lowest for attempt in data.whole.attempts])
    edges = sorted({int((lowest[1:] >= edge).sum()) for edge in sketch.candidates.accepted})
    at_edges = Verdict(data.whole, measure, conditions, only=edges)
    try:
        cut = sketch.best_cut(measure.metric, constraints_of(conditions))
    except InfeasibleError as error:
        return error_complaint(error, verdict, conditions)
    except ValueError as error:
        # Where edges allow no cut, a sketch may say that it cannot know; that there is none it must know.
        if at_edges.may_raise and (verdict.may_raise or "undefined at every cut" not in str(error)):
            return None
        return error_complaint(error, verdict, conditions)
    return at_edges.complaint(found_of(cut, data.scores, interval=False)) or verdict.bracket_complaint(
        cut.lower, cut.upper
    )


# Frames


@cache
def _connection() -> Any:
    import duckdb

    return duckdb.connect(config={"threads": 1})


@cache
def _folder() -> FilePath:
    # It is removed when the process ends, with the object that is kept here.
    _folder.kept = tempfile.TemporaryDirectory()  # type: ignore[attr-defined]
    return FilePath(_folder.kept.name)  # type: ignore[attr-defined]


def arrow_table(data: Data) -> Any:
    import pyarrow

    columns = {"score": data.scores, "label": data.labels}
    if data.weights is not None:
        columns["weight"] = data.weights
    if data.groups is not None:
        columns["group"] = data.groups
    return pyarrow.table(columns)


def held(data: Data) -> Any:
    """The rows as an engine holds them."""
    table, engine = arrow_table(data), data.options["engine"]
    if engine == "pyarrow":
        return table
    if engine == "duckdb":
        return _connection().from_arrow(table)
    if engine == "pandas":
        return table.to_pandas()
    if engine in ("polars", "polars lazy"):
        import polars

        frame = polars.from_arrow(table)
        return frame.lazy() if engine == "polars lazy" else frame
    if engine == "parquet":
        import pyarrow.parquet

        path = _folder() / "rows.parquet"
        pyarrow.parquet.write_table(table, path, row_group_size=5)
        return path
    if engine == "ibis":
        import ibis

        return ibis.memtable(table)
    if engine == "dask":
        import dask
        import dask.dataframe

        dask.config.set(scheduler="synchronous")
        return dask.dataframe.from_pandas(table.to_pandas(), npartitions=2)
    from engines import spark_session

    return spark_session().createDataFrame(table.to_pandas())


NO_ENGINE_HAS = ("float16",)


def by_frame(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Any:
    return tune_frame(
        held(data),
        label="label",
        score="score",
        weight=None if data.weights is None else "weight",
        metric=measure.metric,
        constraint=constraints_of(conditions),
    )


def by_counting(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Any:
    """A DuckDB relation asked to count, as Ibis is; from `tune_frame` it would be read in batches."""
    from surecut.core.candidates import cut_of
    from surecut.core.search import search
    from surecut.sources.columns import Columns
    from surecut.sources.engines import EngineSource
    from surecut.tuning.frame import engine_rows
    from surecut.tuning.request import Request

    columns = Columns("score", "label", None if data.weights is None else "weight")
    request = Request((measure.metric,), constraints=tuple(condition.constraint for condition in conditions))
    source = EngineSource(engine_rows(held(data), columns, request))
    (found,) = search(source, request.objectives)
    return cut_of(found, source.sample)


# Many labels


NOT_SPARSE = ("float16", "bytes")


def draw_matrix(*parts: str, sparse: bool = False) -> Draw:
    def draw(random: np.random.Generator, wanted: Wanted) -> Data:
        rows, labels = draw_size(random, 24, wanted), int(random.integers(1, 5))
        family, scores = draw_scores(random, rows * labels, NOT_SPARSE if sparse else (), wanted)
        scores = scores.reshape(rows, labels)
        if sparse:
            scores = scores.astype(np.float32 if scores.dtype == np.float32 else np.float64)
            scores[random.random(scores.shape) < random.choice([0.1, 0.4, 0.8])] = -np.inf
        truth = np.column_stack([draw_labels(random, scores[:, i], wanted) for i in range(labels)])
        kind, weights = draw_weights(random, rows, wanted=wanted)
        data = Data(truth, scores, weights, None, family, kind, draw_settings(random, *parts))
        data.options["sparse"] = sparse
        data.options["order"] = str(random.choice(["C", "F"]))
        return data

    return draw


def score_matrix(data: Data) -> Any:
    if not data.options["sparse"]:
        return np.asarray(data.scores, order=data.options["order"])
    from scipy import sparse

    row, column = np.nonzero(data.scores > -np.inf)
    if len(row) and data.options["order"] == "F":  # a stored −inf is absent, too
        missing = np.argwhere(data.scores == -np.inf)[:2]
        row, column = np.concatenate((row, missing[:, 0])), np.concatenate((column, missing[:, 1]))
    return sparse.csr_array((data.scores[row, column], (row, column)), shape=data.scores.shape)


def by_matrix(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Any:
    truth = np.asarray(data.labels, order=data.options["order"])
    return tune_thresholds(
        truth,
        score_matrix(data),
        metric=measure.metric,
        average=data.options["average"],
        sample_weight=data.weights,
        constraint=constraints_of(conditions),
    )


def by_tallies(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Any:
    tallies = [
        ScoreTally.from_scores(problem.labels, problem.scores, sample_weight=problem.weights) for problem in data.parts
    ]
    return tune_tallies(
        tallies,
        range(len(tallies)),
        metric=measure.metric,
        average=data.options["average"],
        constraint=constraints_of(conditions),
    )


def draw_groups(*parts: str) -> Draw:
    """Rows of groups of unequal sizes."""

    def draw(random: np.random.Generator, wanted: Wanted) -> Data:
        most = {None: [1, 2, 5, 9, 20, 30, 60], "one row": [1]}.get(wanted.rows, [1, 2, 5, 9, 20])
        sizes = random.choice(most, int(random.integers(1, 5)))
        family, scores = draw_scores(random, int(sizes.sum()), NO_ENGINE_HAS, wanted)
        groups = np.repeat(np.arange(len(sizes)), sizes)
        labels = np.concatenate([draw_labels(random, scores[groups == i], wanted) for i in range(len(sizes))])
        order = random.permutation(len(groups))
        kind, weights = draw_weights(random, len(groups), zeros=False, wanted=wanted)
        settings = draw_settings(random, *parts, *(("bins",) if random.random() < 0.5 else ()))
        return Data(labels[order], scores[order], weights, groups[order], family, kind, settings)

    return draw


def by_groups(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Any:
    return tune_frame(
        held(data),
        label="label",
        score="score",
        by="group",
        average=data.options["average"],
        weight=None if data.weights is None else "weight",
        metric=measure.metric,
        constraint=constraints_of(conditions),
    )


def checked_labels(call: Call) -> Callable[[Data, Measure, tuple[Condition, ...]], Complaint | None]:
    def check(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Complaint | None:
        require_monotone(measure, data.whole, *data.parts)
        judge = macro_complaint if data.options["average"] == "macro" else micro_complaint
        return judge(data, measure, conditions, call)

    return check


def micro_complaint(data: Data, measure: Measure, conditions: tuple[Condition, ...], call: Call) -> Complaint | None:
    verdict = Verdict(data.whole, measure, conditions)
    try:
        cut = call(data, measure, conditions)
    except ValueError as error:
        return error_complaint(error, verdict, conditions)
    threshold = float(cut.thresholds[0])
    if not (cut.thresholds == threshold).all():
        return "micro", f"more than one threshold: {cut.thresholds}"
    predicted = (data.scores.astype(float) >= threshold) & (threshold < math.inf)
    if data.options.get("sparse"):
        predicted &= data.scores > -math.inf
    confusion = cut.confusion
    cells = tuple(float(getattr(confusion, cell).sum()) for cell in ("tp", "fp", "fn", "tn"))
    interval = (float(cut.intervals[0, 0]), float(cut.intervals[0, 1]))
    complaint = verdict.complaint(Found(threshold, cut.value, predicted.ravel(), interval, cells))
    for i, problem in enumerate(data.parts):
        lowest = np.array([attempt.lowest for attempt in problem.attempts[1:]])
        chosen = int((lowest >= threshold).sum()) if threshold < math.inf else 0
        own = tuple(getattr(confusion, cell)[i].item() for cell in ("tp", "fp", "fn", "tn"))
        complaint = complaint or problem.cells_complaint(own, chosen)
    return complaint


def macro_complaint(data: Data, measure: Measure, conditions: tuple[Condition, ...], call: Call) -> Complaint | None:
    """Each label has its own best cut; one whose metric is undefined takes the pooled cut and says so."""
    verdicts = [Verdict(problem, measure, conditions) for problem in data.parts]
    may_be_undefined = [v.refused or (not conditions and v.may_raise) for v in verdicts]
    may_be_infeasible = [bool(conditions) and not v.refused and v.may_raise for v in verdicts]
    pooled = Verdict(data.whole, measure, conditions) if any(may_be_undefined) else None
    try:
        cut = call(data, measure, conditions)
    except ValueError as error:
        if any(may_be_infeasible) or all(may_be_undefined) or (pooled is not None and pooled.may_raise):
            return None
        return "refused", f"{type(error).__name__}: {error}; every label has a cut"
    for i, (verdict, problem) in enumerate(zip(verdicts, data.parts, strict=True)):
        threshold = float(cut.thresholds[i])
        predicted = (problem.scores.astype(float) >= threshold) & (threshold < math.inf)
        if data.absent is not None:
            predicted &= problem.scores > data.absent
        if verdict.refused or (not conditions and verdict.must_raise):
            if threshold != cut.shared_threshold:
                return "shared", f"label {i} is undefined, but has the threshold {threshold!r} of its own"
            if cut.labels[i] not in cut.shared:
                return "shared not said", f"label {i} has the shared threshold {threshold!r}, and `shared` has it not"
            continue
        if may_be_undefined[i] and threshold == cut.shared_threshold:
            continue
        interval = (float(cut.intervals[i, 0]), float(cut.intervals[i, 1]))
        cells = tuple(getattr(cut.confusion, cell)[i].item() for cell in ("tp", "fp", "fn", "tn"))
        if complaint := verdict.complaint(Found(threshold, float(cut.per_label[i]), predicted, interval, cells)):
            return complaint[0], f"label {i}: {complaint[1]}"
    if pooled is not None and cut.shared_threshold is not None:
        shared = cut.shared_threshold
        predicted = (data.scores.astype(float) >= shared) & (shared < math.inf)
        if data.absent is not None:
            predicted &= data.scores > data.absent
        if complaint := pooled.complaint(Found(shared, None, predicted.ravel())):
            return complaint[0], f"shared threshold: {complaint[1]}"
    known = cut.per_label[~np.isnan(cut.per_label)]
    with np.errstate(invalid="ignore"):
        if len(known) and not np.isclose(cut.value, known.mean(), rtol=1e-12, atol=0) and np.isfinite(known).all():
            return "value", f"the macro value is {cut.value!r}, the mean of {cut.per_label} is {known.mean()!r}"
    return None


# The samples average


def draw_samples(random: np.random.Generator, wanted: Wanted, *, sparse: bool) -> Data:
    data = draw_matrix("sources", sparse=sparse)(random, wanted)
    if len(data.labels) > 40:
        data = data.without(np.arange(40, len(data.labels)))
        if data.weights is not None and not data.weights.any():
            data.weights[0] = 1.0
    data.options["zero_division"] = float(random.choice([0.0, 0.0, 1.0, 0.3]))
    data.options["average"] = "samples"
    return data


def check_samples(data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Complaint | None:
    if data.weighing in ("equal 1e200", "equal 1e-200", "uneven 1e12"):
        weights: Any = data.weights / data.weights.max()
    else:
        weights = data.weights
    exact = [1] * len(data.labels) if weights is None else [Fraction(float(weight)) for weight in weights]
    zero_division = Fraction(repr(data.options["zero_division"]))
    total = sum(exact)
    changes: dict[float, Any] = {}
    nothing = Fraction(0)
    largest = max(Fraction(1), zero_division)
    for label, score, weight in zip(data.labels, data.scores, exact, strict=True):
        if not weight:
            continue
        before = None
        for attempt in Oracle.attempts(label, score, absent=data.absent):
            value = measure.formula(*attempt.cells)
            value = zero_division if value is None else Fraction(value)
            largest = max(largest, abs(value))
            if before is None:
                nothing += weight * value
            else:
                changes[attempt.lowest] = changes.get(attempt.lowest, 0) + weight * (value - before)
            before = value
    values, lowest, running = [nothing / total], [math.inf], nothing
    for threshold in sorted(changes, reverse=True):
        running += changes[threshold]
        values.append(running / total)
        lowest.append(threshold)
    cut = tune_thresholds(
        data.labels,
        score_matrix(data),
        metric=measure.metric,
        average="samples",
        sample_weight=data.weights,
        zero_division=data.options["zero_division"],
    )
    threshold = float(cut.thresholds[0])
    chosen = sum(one >= threshold for one in lowest[1:]) if threshold < math.inf else 0
    best = max(values)
    tolerance = TIE * abs(best) + ROUNDING * largest
    said = f"chose {float(values[chosen])!r} at >= {lowest[chosen]!r}; best is {float(best)!r}"
    if values[chosen] < best - Fraction(3, 2) * tolerance:
        return "worse", said
    if any(value >= best - tolerance / 2 for value in values[:chosen]):
        return "tie", said
    if not abs(Fraction(cut.value) - values[chosen]) <= Fraction(3, 2) * tolerance:
        return "value", f"says {cut.value!r}; {said}"
    lower = lowest[chosen + 1] if chosen + 1 < len(lowest) else -math.inf
    if (float(cut.intervals[0, 0]), float(cut.intervals[0, 1])) != (lower, lowest[chosen]):
        return "interval", f"says {cut.intervals[0]}, expected {(lower, lowest[chosen])}"
    return None


# All paths

ARRAYS = "tune_threshold(labels, scores, metric=metric, sample_weight=weights, constraint=constraint)"
TALLY = "ScoreTally.from_scores(labels, scores, sample_weight=weights)"
PIECE = "ScoreTally.from_scores(labels[i], scores[i], sample_weight=None if weights is None else weights[i])"
PIECES = f"tallies = [{PIECE} for i in (slice(i, None, 3) for i in range(min(3, len(labels))))]\n"
MATRIX = (
    "tune_thresholds(labels, scores, metric=metric, average={average!r}, sample_weight=weights, constraint=constraint)"
)
FRAME = (
    "from fuzz.paths import Data, held\n"
    "frame = held(Data(labels, scores, weights, {groups}, options={{'engine': {engine!r}}}))\n"
    "tune_frame(frame, label='label', score='score', weight=None if weights is None else 'weight', metric=metric, "
    "constraint=constraint{by})"
)
COUNTING = (
    "from fuzz.measures import Condition\nfrom fuzz.paths import Data, by_counting\n"
    "data = Data(labels, scores, weights, options={{'engine': {engine!r}}})\n"
    "by_counting(data, SimpleNamespace(metric=get_metric(metric)), "
    "[SimpleNamespace(constraint=one) for one in constraint or []])"
)
SKETCH = (
    "sketch = ScoreSketch({bits})\n"
    "for i in (slice(i, None, {pieces}) for i in range({pieces})):\n"
    "    if weights is None or weights[i].any():\n"
    "        sketch.update(labels[i], scores[i], None if weights is None else weights[i])\n"
    "str(cut := sketch.best_cut(metric, constraint)), cut.lower, cut.upper"
)
GROUPED = f"tallies = [{PIECE} for i in (groups == group for group in np.unique(groups))]\n"


def written(template: str) -> Callable[[Data], str]:
    """The call as Python: statements, if need be, and an expression in the last line."""

    def code(data: Data) -> str:
        grouped = data.groups is not None
        by = f", by='group', average={data.options.get('average')!r}" if grouped else ""
        return template.format(**data.options, groups="groups" if grouped else None, by=by)

    return code


ENGINES = {"ibis": 0.05, "dask": 0.02, "spark": 0.02}
"""Those that count rows by themselves, and how often they are taken."""

KERNELS = ("numpy", "compiled")
AVERAGES = ("macro", "macro", "micro")

PATHS: dict[str, Path] = {
    "sorted": Path(draw_rows(), checked_rows(by_arrays), written(ARRAYS), 3, {"kernels": KERNELS}),
    "search": Path(draw_rows("search"), checked_rows(by_arrays), written(ARRAYS), 3, {"kernels": KERNELS}),
    "tally": Path(draw_rows(), checked_rows(by_tally), written(f"{TALLY}.best_cut(metric, constraint)")),
    "tally_sum": Path(
        draw_rows(),
        checked_rows(by_sum_of_tallies),
        written(f"{PIECES}sum(tallies).best_cut(metric, constraint)"),
    ),
    "hull": Path(
        draw_rows(),
        checked_rows(by_hull),
        written(f"{TALLY}.hull.best_cut(metric)"),
        constrained=False,
        bounded_only=True,
        on_hull_only=True,
    ),
    "prior": Path(
        partial(draw_prior, hull=False),
        check_prior,
        written(f"{TALLY}.with_prior({{prior}}).best_cut(metric, constraint)"),
        0.7,
        both_classes_only=True,
    ),
    "prior_hull": Path(
        partial(draw_prior, hull=True),
        check_prior,
        written(f"{TALLY}.with_prior({{prior}}).hull.best_cut(metric)"),
        0.3,
        both_classes_only=True,
        constrained=False,
        bounded_only=True,
        on_hull_only=True,
    ),
    "sketch": Path(draw_sketch, check_sketch, written(SKETCH), 1, {"kernels": KERNELS}, bounded_only=True),
    "dense": Path(
        draw_matrix("sources"),
        checked_labels(by_matrix),
        written(MATRIX),
        1,
        {"kernels": KERNELS, "average": AVERAGES},
    ),
    "dense_search": Path(
        draw_matrix("sources", "search"),
        checked_labels(by_matrix),
        written(MATRIX),
        1,
        {"kernels": KERNELS, "average": AVERAGES},
    ),
    "dense_bins": Path(
        lambda random, wanted: draw_matrix("sources", "bins")(random, replace(wanted, weighing="none")),
        checked_labels(by_matrix),
        written(MATRIX),
        2,
        {"kernels": KERNELS, "average": ("macro",)},
        weighted=False,
    ),
    "sparse": Path(
        draw_matrix("sources", sparse=True),
        checked_labels(by_matrix),
        written(MATRIX),
        1,
        {"average": AVERAGES},
        without=NOT_SPARSE,
    ),
    "tallies": Path(
        draw_groups(),
        checked_labels(by_tallies),
        written(
            GROUPED + "tune_tallies(tallies, np.unique(groups), metric=metric, average={average!r}, "
            "constraint=constraint)"
        ),
        1,
        {"average": AVERAGES},
        without=NO_ENGINE_HAS,
    ),
    **{
        name: Path(
            partial(draw_samples, sparse=sparse),
            check_samples,
            written(MATRIX.replace("constraint=constraint", "zero_division={zero_division}")),
            share,
            without=NOT_SPARSE if sparse else (),
            constrained=False,
            finite_only=True,
        )
        for name, sparse, share in (("samples", False, 0.3), ("samples_sparse", True, 0.2))
    },
    "batches": Path(
        draw_rows("search", "batches", without=NO_ENGINE_HAS),
        checked_rows(by_frame),
        written(FRAME),
        1,
        {"engine": ("pyarrow", "pyarrow", "duckdb", "polars lazy", "parquet"), "kernels": KERNELS},
        without=NO_ENGINE_HAS,
    ),
    "counting": Path(
        draw_rows("search", "grouped", without=NO_ENGINE_HAS),
        checked_rows(by_counting),
        written(COUNTING),
        0.25,
        {"engine": ("duckdb",)},
        without=NO_ENGINE_HAS,
    ),
    "groups": Path(
        draw_groups("grouped", "sources"),
        checked_labels(by_groups),
        written(FRAME),
        0.3,
        {"engine": ("polars", "pyarrow", "duckdb"), "average": AVERAGES},
        without=NO_ENGINE_HAS,
    ),
    **{
        engine: Path(
            draw_rows("search", "grouped", without=NO_ENGINE_HAS),
            checked_rows(by_frame),
            written(FRAME),
            share,
            {"engine": (engine,)},
            without=NO_ENGINE_HAS,
            engine=engine != "ibis",
        )
        for engine, share in ENGINES.items()
    },
    **{
        f"{engine}_groups": Path(
            draw_groups("grouped"),
            checked_labels(by_groups),
            written(FRAME),
            share,
            {"engine": (engine,), "average": AVERAGES},
            without=NO_ENGINE_HAS,
            engine=engine != "ibis",
        )
        for engine, share in ENGINES.items()
    },
}


def check(path: Path, data: Data, measure: Measure, conditions: tuple[Condition, ...]) -> Complaint | None:
    """One run: what differs from the oracle, or None."""
    with shrunk(data.settings):
        return path.check(data, measure, conditions)


def number_of(name: str) -> int:
    """A path's number in seeds: it does not depend on which other paths there are."""
    return zlib.crc32(name.encode())
