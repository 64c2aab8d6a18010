"""The command line: ``surecut …``. A command loads what it needs when it is run.

Exit codes: 0 done; 1 the data or the options do not fit, and a sentence on standard error says why; 2 an option or a
command is misspelt or missing; 3 `check` found a change, or a condition of bands that does not hold; 130 it was stopped
by Ctrl-C.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surecut._plurals import all_of, counted
from surecut.cli.help import with_our_help
from surecut.cli.options import in_options
from surecut.study.commands import app as study

if TYPE_CHECKING:
    from surecut.cli.bands import TunedBands
    from surecut.cli.files import Rows
    from surecut.cli.top_k import TunedTopK
    from surecut.metrics import Metric
    from surecut.sources.applying import Decision
    from surecut.tuning.bands_request import BandsRequest

app = typer.Typer(
    help="Cut the scores of a classifier where its metric is best: exactly, at any size, with a guarantee.",
    epilog="Exit codes: 0 done; 1 the data or the options do not fit; 2 an option or a command is misspelt or missing; "
    "3 check found a change, or a condition of bands that does not hold; 130 stopped by Ctrl-C.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(study, name="study")


class Format(StrEnum):
    """How results are printed."""

    table = "table"
    json = "json"


class MissingRows(StrEnum):
    """What to do with rows that lack a label or a score."""

    error = "error"
    drop = "drop"


class UncheckedLabels(StrEnum):
    """What to do with labels that only the cut or only the file has."""

    drop = "drop"
    error = "error"


class Average(StrEnum):
    """How values of many labels become one."""

    macro = "macro"
    micro = "micro"
    weighted = "weighted"
    multiclass = "multiclass"
    samples = "samples"  # refused, with the reason


class WeightsMean(StrEnum):
    """What weights mean."""

    counts = "counts"
    importance = "importance"


class Method(StrEnum):
    """How a cut is certified."""

    holdout = "holdout"
    uniform = "uniform"
    bootstrap = "bootstrap"
    theorem = "theorem"


FILE = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="CSV, TSV, Parquet or JSON lines, also as .gz or .zst; a quoted pattern such as 'day-*.csv'; a folder; a "
        "URL; or - for standard input.",
    ),
]
LABEL = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of labels.", show_default="label, y, target, …")
]
SCORE = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of scores.", show_default="score, p, probability, …")
]
WEIGHT = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of weights.", show_default=False)]
WEIGHTS = Annotated[
    WeightsMean | None,
    typer.Option(
        metavar="counts|importance",
        help="What weights mean where something is promised. counts: 2 is the row twice. importance: how much a row "
        "matters, which only certify --method bootstrap takes.",
        show_default=False,
    ),
]
RANDOM_STATE = Annotated[int, typer.Option(metavar="NUMBER", min=0, help="The random numbers of the bootstrap.")]
POS_LABEL = Annotated[
    str | None, typer.Option(metavar="VALUE", help="The label that is positive.", show_default="1, true or yes")
]
CUTS_LABEL = Annotated[
    str | None, typer.Option(metavar="VALUE", help="The label that is positive.", show_default="the cut's own")
]
CUT = Annotated[Path, typer.Option(metavar="PATH", help="A cut that tune saved, bands, or a rule.", show_default=False)]
CUT_BY = Annotated[
    list[str] | None,
    typer.Option(
        "--by",
        metavar="COLUMN",
        help="For a cut of many labels, or bands of groups: the same columns in the same order as in tune.",
        show_default=False,
    ),
]
ROW = Annotated[
    list[str] | None,
    typer.Option(
        "--row",
        metavar="COLUMN",
        help="For a rule of k labels a row: the column that tells the rows of a long table apart, as in tune.",
        show_default=False,
    ),
]
MISSING = Annotated[
    MissingRows, typer.Option(metavar="error|drop", help="What to do with rows that have no label or no score.")
]
FORMAT = Annotated[
    Format, typer.Option("--format", metavar="table|json", help="A table for people, JSON for programs.")
]


def _show_version(asked: bool) -> None:
    if asked:
        from surecut import __version__

        typer.echo(f"surecut {__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the command itself."""
    context.obj = debug
    del version  # its callback has answered


def sentence(error: Exception) -> str:
    """An error in words; those of the system come as a number and a name."""
    if isinstance(error, FileNotFoundError) and error.filename:
        return f"there is no file {error.filename}"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


@contextmanager
def _stopped_by_hand() -> Iterator[None]:
    """Ctrl-C is no error: exit code 130, as shells have it."""
    try:
        yield
    except (KeyboardInterrupt, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "interrupted" not in str(error):  # DuckDB's word for it
            raise
        typer.echo("surecut: stopped", err=True)
        raise typer.Exit(130) from None


def _is_changed(error: RuntimeError) -> bool:
    """Whether a file was written to while it was read."""
    from surecut.core.search import SourceChangedError

    return isinstance(error, SourceChangedError)


@contextmanager
def _explained(context: typer.Context) -> Iterator[None]:
    """A user's mistake gets a sentence and exit code 1; with --debug, the traceback."""
    try:
        with _stopped_by_hand():
            yield
    except (ValueError, TypeError, OSError, MemoryError, ModuleNotFoundError, RuntimeError) as error:
        if context.obj or (isinstance(error, RuntimeError) and not _is_changed(error)):
            raise
        said = in_options(sentence(error))
        typer.secho(f"surecut: {said}", fg=None if os.environ.get("NO_COLOR") else "red", err=True)
        raise typer.Exit(1) from None


@app.command(
    epilog="Examples:\n"
    "surecut tune scores.csv --label y --score p --out cut.json --report page.html\n"
    'surecut tune scores.parquet --metric recall --constraint "precision>=0.9"\n'
    'surecut tune scores.csv --metric "utility(fp=-2, fn=-100)" --prior 0.02\n'
    "surecut tune tags.csv --by tag --average macro --out cuts.json\n"
    'surecut tune scores.csv --upper "ppv>=0.9" --lower "npv>=0.95"\n'
    'surecut tune rows.csv --gain "no: 0, -4" --gain "yes: -4, 0" --gain "ask: -1"\n'
    "surecut tune long.csv --top-k 1 --row id --by class --label y --out rule.json\n"
    "surecut tune tags.csv --top-k 5 --row document --by tag --stable"
)
def tune(
    context: typer.Context,
    file: FILE,
    label: LABEL = None,
    score: SCORE = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="What the cut is best for; repeat for several. See surecut metrics. Of bands one ratio, if any.",
            show_default="f1, of bands none",
        ),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="A cut, or bands, for each value of this column: labels, tags, countries; repeat for several columns.",
        ),
    ] = None,
    average: Annotated[
        Average | None,
        typer.Option(
            metavar="NAME",
            help="With --by: macro for a threshold for each value, or micro for one of all. With --top-k: macro, "
            "weighted, micro or, of classes, multiclass.",
            show_default="macro, of metrics of several classes multiclass",
        ),
    ] = None,
    weight: WEIGHT = None,
    weights: WEIGHTS = None,
    pos_label: POS_LABEL = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(help='Such as "precision>=0.9" or "predicted_positive_rate<=0.01"; repeat for several.'),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Such as 0.95: constraints, or conditions on zones, hold on new rows, and the table says what the "
            "metric of a cut is there.",
        ),
    ] = None,
    prior: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of positives in deployment, if it is another."),
    ] = None,
    shrinkage: Annotated[
        str,
        typer.Option(
            metavar="auto|NUMBER",
            help="Prior strength of a calibrated model of the scores, in equivalent positives; 0 uses the labels "
            "alone. auto estimates it: use it for few positives (tens), or for labels of which some have few.",
        ),
    ] = "0",
    stable: Annotated[
        bool,
        typer.Option(
            "--stable",
            help="A cut, or bands, for new rows: settled between the best cuts of resamples and of a calibrated model, "
            "instead of the best cut of these rows.",
        ),
    ] = False,
    missing: MISSING = MissingRows.error,
    random_state: Annotated[
        int, typer.Option(metavar="NUMBER", min=0, help="Seed of the resamples of --stable and of conditions.")
    ] = 0,
    top_k: Annotated[
        int | None,
        typer.Option(
            "--top-k",
            metavar="K",
            help="Find the rule that predicts K labels for each row of a long table, with a line for each row and "
            "label; 1 for several classes. Say with --row and --by which columns name both.",
        ),
    ] = None,
    row: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="With --top-k: the column that tells rows apart; repeat for several."),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --top-k 1: what actions cost, instead of a metric; CSV, a line for each true class and a column "
            "for each action, with their names before them.",
        ),
    ] = None,
    reject_cost: Annotated[
        float | None,
        typer.Option(metavar="COST", help="With --top-k 1: what it costs to predict nothing, where an error costs 1."),
    ] = None,
    bands: Annotated[
        bool,
        typer.Option(
            "--bands",
            help="Find several thresholds, and a zone between them for each action: no, ask, yes. Each of the next "
            "five options implies it.",
        ),
    ] = False,
    upper: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help='On the highest zone, such as "ppv>=0.9"; repeat for several.'),
    ] = None,
    lower: Annotated[
        list[str] | None,
        typer.Option(metavar="CONDITION", help='On the lowest zone, such as "npv>=0.95"; repeat for several.'),
    ] = None,
    condition: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ZONE:CONDITION",
            help='On any zone, such as "ask: share<=0.2"; repeat for several. Conditions bound ppv, npv, share, recall '
            "or fpr of the rows in a zone.",
        ),
    ] = None,
    gain: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ZONE:GAINS",
            help='What a row in a zone is worth if it is negative, and if it is positive, such as "yes: -5, 1"; or one '
            'number for both, such as "ask: -0.5". Repeat for each zone; others are worth 0.',
        ),
    ] = None,
    zones: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Names of the zones, from the lowest score to the highest.", show_default="no,ask,yes"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Save the cut, or bands, as JSON; with several metrics write {metric} into the name."
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="PATH", help="Save a page to explore, as HTML.")] = None,
    output: FORMAT = Format.table,
) -> None:
    """Find the threshold at which a metric is best, several with a zone for each action, or the best k labels of rows.

    FILE holds labels and scores of rows that the model was not trained on. `score >= threshold` is positive. With
    bands, a row is in the highest zone whose threshold its score reaches. With --top-k it gets the k labels with the
    largest a * score + offset.
    """
    from surecut._files import require_folder
    from surecut.certificates.weights import require_both
    from surecut.cli.bands import ZoneOptions, conditions_named, refuse_options_of_cuts, tuned_bands
    from surecut.cli.top_k import TopKOptions, refuse_other_options, tuned_top_k
    from surecut.tuning.bands_request import BandsRequest
    from surecut.tuning.request import Request

    with _explained(context):
        options: dict[str, Any] = {
            "weights": None if weights is None else weights.value,
            "confidence": confidence,
            "prior": prior,
            "stable": stable,
            "random_state": random_state,
        }
        request: Request | BandsRequest | dict[str, Any]
        asked = ZoneOptions(upper or (), lower or (), condition or (), gain or (), zones)
        long = TopKOptions(top_k, row or (), costs, reject_cost)
        mean = Average.macro.value if average is None else average.value
        subject: Sequence[str] = ()
        if long.are_given:
            others = {"--constraint": constraint, "--confidence": confidence, "--weights": weights, "--prior": prior}
            others |= {"--upper, --lower, --condition, --gain and --zones": asked.are_given, "--bands": bands}
            refuse_other_options(others)
            request = long.request(
                _single_names(metric or []),
                by or (),
                average=None if average is None else mean,
                shrinkage=_kappa(shrinkage),
                stable=stable,
                random_state=random_state,
            )
            names = ["costs"] if long.has_costs else metric or ["f1"]
        elif bands or asked.are_given:
            refuse_options_of_cuts(constraint, _kappa(shrinkage), mean, bool(report and by))
            request = asked.request(_single_names(metric or []), by or (), **options)
            subject, names = conditions_named(request), ["bands"]
        else:
            request = Request.of_table(
                _single_names(metric or ["f1"]),
                by=by or (),
                average=mean,
                constraint=constraint,
                shrinkage=_kappa(shrinkage),
                **options,
            )
            subject, names = constraint or [], _names(request.metrics)
        require_both(options["weights"], weight is not None, "weight")
        outs = _outs(out, names)
        for path in [*outs, *([report] if report else [])]:
            require_folder(path)
        if report is not None and report.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"the page is HTML: give --report a name such as {report.with_suffix('.html')}")
        is_bands, is_long = isinstance(request, BandsRequest), isinstance(request, dict)
        if out is not None and out.suffix.lower() == ".parquet" and (is_bands or not by):
            what = "bands are" if is_bands else "a single cut is"
            raise ValueError(f"{what} saved as JSON: give --out a name such as {out.with_suffix('.json')}")

        from surecut.cli import printing
        from surecut.cli.commands import TunedCuts, TunedLabels, tuned_by, tuned_cuts
        from surecut.cli.files import Table, require_apart
        from surecut.report import save_html

        named = {f"--out ({name})" if len(outs) > 1 else "--out": path for name, path in zip(names, outs, strict=False)}
        require_apart(file, named | ({"--report": report} if report else {}))
        title = "Standard input" if file == "-" else Path(file).name
        with printing.working(f"tuning on {file}"), Table(file) as opened:
            rows = opened.rows(
                metrics=() if isinstance(request, dict) else request.metrics,
                label=label,
                score=score,
                weight=weight,
                groups=[*long.row, *(by or ())] or None,
                pos_label=pos_label,
                missing=missing.value,
                is_long=is_long,
            )
            tuned: TunedCuts | TunedLabels | TunedBands | TunedTopK
            notes: list[str] = []
            if isinstance(request, dict):
                tuned = tuned_top_k(rows, long, request, missing.value, notes)
            elif isinstance(request, BandsRequest):
                tuned = tuned_bands(rows, request, report is not None)
            else:
                tuned = (tuned_by if by else tuned_cuts)(rows, request, report is not None)
            saved: Sequence[Decision] = tuned.decisions
            for path, one in zip(outs, saved, strict=False):
                one.save(path)
            if report is not None:
                save_html(tuned.summary(title), report)
        printing.notes([*rows.notes, *notes, *([] if is_long else _one_sided(rows))])
        if output is Format.json:
            printing.as_json(
                {
                    "file": file,
                    "rows": len(rows),
                    "dropped": rows.dropped,
                    "label": rows.label,
                    "positive": rows.positive,
                    "score": rows.score,
                    "notes": list(rows.notes),
                    **tuned.document(),
                }
            )
            return
        if not is_long:
            printing.rows(rows, prior, subject, confidence)
        tuned.show()
        for path in outs:
            printing.line(f"{'bands' if is_bands else 'rule' if is_long else 'cut'} saved: {path}")
        if report is not None:
            shown = f" (it shows {names[0]})" if by and len(names) > 1 else ""
            printing.line(f"page saved: {report}{shown}")


@app.command(
    epilog="Examples:\n"
    "surecut apply new.csv --cut cut.json --score p --out predictions.parquet\n"
    "surecut apply new.csv --cut cut.json --negative no --out predictions.csv\n"
    "surecut apply tags.csv --cut cuts.json --by tag --out predictions.csv\n"
    "surecut apply new.csv --cut bands.json --name action --out actions.csv\n"
    "surecut apply new.csv --cut rule.json --row id --by class --out rows.csv"
)
def apply(
    context: typer.Context,
    file: FILE,
    cut: CUT,
    out: Annotated[
        Path, typer.Option(metavar="PATH", help="Where to write: .csv, .tsv, .parquet or .jsonl.", show_default=False)
    ],
    score: SCORE = None,
    row: ROW = None,
    by: CUT_BY = None,
    name: Annotated[str, typer.Option(help="The new column.")] = "predicted",
    negative: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE", help="Write labels instead of true and false: the cut's positive one, and this one."
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            metavar="negative|error|ZONE",
            help="Rows without a score: negative, or an error; with bands, the zone that they go to, or an error.",
            show_default="negative, with bands no zone",
        ),
    ] = None,
    unknown: Annotated[
        str | None,
        typer.Option(
            metavar="negative|error|ZONE",
            help="With --by: rows of a label that the cut does not know, or of a group that has no bands, likewise.",
            show_default="negative, with bands no zone",
        ),
    ] = None,
) -> None:
    """Add a column that says which rows are cut positive, in which zone they are, or which labels each row gets."""
    with _explained(context):
        from surecut.cli import printing, top_k_tables
        from surecut.cli.commands import apply_cut
        from surecut.cli.files import Table, require_apart

        require_apart(file, {"--out": out}, cut)
        with printing.working(f"applying the cut to {file}"), Table(file) as opened:
            found, of_rows = apply_cut(
                opened,
                cut,
                out,
                score=score,
                row=row or (),
                by=by or (),
                name=name,
                negative=negative,
                missing=missing,
                unknown=unknown,
            )
        printing.notes(opened.notes)
        if of_rows is not None:
            printing.line(f"{top_k_tables.predicted(found, of_rows)}; column {name!r} in {out}")
            return
        outcomes = ", ".join(f"{number:,} {zone}" for zone, number in found.outcomes.items())
        if len(found.outcomes) == 1:  # of a cut
            outcomes = outcomes.replace(" ", " of them ")
        printing.line(f"{counted(found.rows, 'row')} with column {name!r}, {outcomes}: {out}")


@app.command(
    epilog="Examples:\n"
    "surecut certify held_out.csv --cut cut.json --label y --score p\n"
    "surecut certify long.csv --cut rule.json --row id --by class --label y"
)
def certify(
    context: typer.Context,
    file: FILE,
    cut: CUT,
    label: LABEL = None,
    score: SCORE = None,
    row: ROW = None,
    by: CUT_BY = None,
    weight: WEIGHT = None,
    weights: WEIGHTS = None,
    groups: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Rows of one group depend on each other.")
    ] = None,
    pos_label: CUTS_LABEL = None,
    confidence: Annotated[float, typer.Option(help="How sure the promise is.")] = 0.95,
    method: Annotated[
        Method,
        typer.Option(
            help="holdout: rows that did not tune the cut. uniform: any rows. bootstrap: many rows, groups. theorem: "
            "the paper's bound, on the validation rows. Bands have the first two."
        ),
    ] = Method.holdout,
    held_out: Annotated[
        bool | None,
        typer.Option(
            "--held-out/--not-held-out",
            help="--held-out: the rows took part neither in training nor in tuning; you vouch for it. --not-held-out: "
            "they tuned the cut. Without either, the rows are compared with those that the cut remembers.",
            show_default=False,
        ),
    ] = None,
    missing: MISSING = MissingRows.error,
    resamples: Annotated[
        int, typer.Option(metavar="NUMBER", help="With --method bootstrap: how often rows are drawn again.")
    ] = 2000,
    random_state: RANDOM_STATE = 0,
    output: FORMAT = Format.table,
) -> None:
    """Say what a cut or a rule is worth on new rows, or what each zone of bands is, with a guarantee.

    FILE holds rows that neither trained the model nor tuned the cut.
    """
    with _explained(context):
        from surecut.certificates.certifying import check_promise
        from surecut.certificates.weights import require_both
        from surecut.cli import certifying, printing
        from surecut.cli.commands import load_decision, positive_text
        from surecut.cli.files import Table
        from surecut.decisions.top_k import TopK

        meaning = None if weights is None else weights.value
        check_promise(confidence, method.value, meaning, held_out, groups is not None)
        require_both(meaning, weight is not None, "weight")
        decision, notes = load_decision(cut, by, row), list[str]()
        if row and groups is not None:
            raise ValueError(
                "--groups is for cuts and bands: certify a rule of rows that depend on each other in Python"
            )
        with printing.working(f"certifying on {file}"), Table(file) as opened:
            rows = opened.rows(
                label=label,
                score=score,
                pos_label=positive_text(decision, pos_label),
                groups=[*(row or ()), *(by or ()), *([] if groups is None else [groups])] or None,
                weight=weight,
                missing=missing.value,
                is_long=bool(row),
            )
            options: dict[str, Any] = {
                "method": method.value,
                "confidence": confidence,
                "weights": meaning,
                "held_out": held_out,
                "resamples": resamples,
                "random_state": random_state,
            }
            if isinstance(decision, TopK):
                long: dict[str, Any] = {"row_columns": len(row or ()), "missing": missing.value, "notes": notes}
                found = certifying.certified_rule(decision, rows, file=file, **long, **options)
            else:
                found = certifying.certified(
                    decision, rows, file=file, labels=len(by or ()), has_clusters=groups is not None, **options
                )
        printing.notes(notes)
        if output is Format.json:
            printing.as_json(certifying.document(found))
        else:
            certifying.show(found)


@app.command(epilog="Example:\nsurecut check last_week.csv --cut cut.json --looks 52 || echo look at it")
def check(
    context: typer.Context,
    file: FILE,
    cut: CUT,
    label: LABEL = None,
    score: SCORE = None,
    row: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Of a rule of k labels a row, which is refused: certify it instead."),
    ] = None,
    by: CUT_BY = None,
    weight: WEIGHT = None,
    weights: WEIGHTS = None,
    pos_label: CUTS_LABEL = None,
    confidence: Annotated[
        float,
        typer.Option(help="False-alarm rate is at most 1 minus this, over all planned looks."),
    ] = 0.95,
    looks: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="How many checks are planned, 52 for a year of weeks: they share the error. One check is valid for "
            "one look; without this, repeated checks alarm sooner or later although nothing has changed.",
        ),
    ] = 1,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Labelled rows from the time of tuning, to detect smaller changes; best are rows that did not tune "
            "the cut.",
            show_default=False,
        ),
    ] = None,
    missing: MISSING = MissingRows.error,
    unknown: Annotated[
        UncheckedLabels,
        typer.Option(
            metavar="drop|error",
            help="With --by, what to do with labels of the cut, or groups of the bands, that have no rows, and with "
            "rows of others: leave them out and report it, or stop with an error.",
        ),
    ] = UncheckedLabels.drop,
    random_state: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            min=0,
            help="The random numbers of the bootstrap, where --reference holds the tuning rows.",
        ),
    ] = 0,
    output: FORMAT = Format.table,
) -> None:
    """Say whether anything has moved since the cut, or bands, were tuned; exit code 3 if so.

    FILE holds labelled rows from deployment. The share of positives and the metric, or the zones of bands, are compared
    with the tuning rows, beyond the chance of both samples. That is valid for one look: for a check that is repeated,
    say with --looks how often. The exit code is 3, too, where a condition of bands does not hold.
    """
    with _explained(context):
        from surecut.certificates.drift import check_watch
        from surecut.certificates.weights import require_both
        from surecut.cli import checking, printing
        from surecut.cli.commands import load_decision, positive_text
        from surecut.cli.files import Arrays, Table

        options: dict[str, Any] = {
            "weights": None if weights is None else weights.value,
            "confidence": confidence,
            "looks": looks,
        }
        check_watch(**options)
        checking.require_watched(cut)
        loaded = load_decision(cut, by, row)
        require_both(options["weights"], weight is not None or loaded.weighted, "weight")

        def rows_of(path: str) -> Arrays:
            with Table(path) as opened:
                positive = positive_text(loaded, pos_label)
                asked: dict[str, Any] = {"label": label, "score": score, "pos_label": positive, "groups": by}
                return opened.rows(**asked, weight=weight, missing=missing.value).arrays()

        with printing.working(f"reading {file}"):
            now, then = rows_of(file), None if reference is None else rows_of(reference)
        with printing.working("comparing"):
            found, notes = checking.checked(
                loaded,
                now,
                then,
                (file, str(reference)),
                by=by or (),
                unknown=unknown.value,
                random_state=random_state,
                **options,
            )
        printing.notes(notes)
        if output is Format.json:
            printing.as_json(checking.document(found))
        else:
            checking.show(found)
    if checking.is_alarm(found):
        raise typer.Exit(3)


@app.command(epilog="Example:\nsurecut metrics --prior 0.02 --optimum 0.6")
def metrics(
    context: typer.Context,
    prior: Annotated[float, typer.Option(help="Share of positives at which the constants are shown.")] = 0.1,
    optimum: Annotated[float, typer.Option(help="Best attainable value at which the constants are shown.")] = 0.8,
    output: FORMAT = Format.table,
) -> None:
    """List the metrics: names, formulas, and the constants of the theorems.

    γ, C, D: the smaller C/γ, the less a regret of the scores matters. α: a row is flagged from this chance on.
    """
    with _explained(context):
        from surecut.cli import printing

        if not 1e-12 <= prior < 1:
            raise ValueError(f"--prior must be a share, at least 1e-12 and below 1, got {prior:g}")
        if not 0 < optimum <= 1:
            raise ValueError(f"--optimum must be the best value of a metric, above 0 and at most 1, got {optimum:g}")
        listed = printing.catalogue(prior, optimum)
        if output is Format.json:
            printing.as_json({"prior": prior, "optimum": optimum, "metrics": listed})
            return
        constants = ("gamma", "C", "alpha", "D")
        rows = [
            [row["name"], *("–" if row[key] is None else f"{row[key]:.3g}" for key in constants), row["formula"]]
            for row in listed
        ]
        printing.table(("metric", "γ", "C", "α", "D", "what it is"), rows, left=(0, 5))
        printing.line(
            f"\nConstants at a share of positives of {prior:g} and a best value of {optimum:g}; – where no theorem "
            "applies. Also f<beta>, such as f1.5, and with parameters: utility(tp, fp, fn, tn), "
            "weighted_accuracy(negative_weight, positive_weight), tversky(alpha, beta)."
        )


@app.command(epilog="Example:\nsurecut demo --out picture.svg --random-state 1")
def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option(metavar="PATH", help="Where to save the picture.")] = Path("surecut-demo.png"),
    random_state: Annotated[int, typer.Option(metavar="NUMBER", min=0, help="Which random split of the data.")] = 0,
) -> None:
    """Show on real data what a tuned cut is worth: six metrics, at 0.5 and at their own cut."""
    with _explained(context):
        from surecut.cli import demo as story

        story.show(out, random_state)


def _single_names(metrics: list[str]) -> list[str]:
    """The same, unless a name holds several, or an average, which is how other programs have it."""
    from surecut._sklearn_names import averaged

    for given in metrics:
        if found := averaged(given):
            base, average = found
            raise ValueError(
                f"{given!r} is an average over labels: say --metric {base} --average {average}, with --by or --top-k"
            )
        if "," in given and "(" not in given:
            repeated = " ".join(f"--metric {name.strip()}" for name in given.split(","))
            raise ValueError(f"--metric names one metric; for several repeat it: {repeated}")
    return metrics


def _one_sided(rows: Rows) -> list[str]:
    """What to say where all rows are of one class."""
    if rows.positives not in (0, len(rows)):
        return []
    what = "positive" if rows.positives else "negative"
    return [f"{all_of(len(rows), 'row')} {'is' if len(rows) == 1 else 'are'} {what}, which cannot tell where to cut"]


def _kappa(shrinkage: str) -> float | str:
    """A number, or a word."""
    if shrinkage == "auto":
        return shrinkage
    try:
        return float(shrinkage)
    except ValueError:
        return shrinkage  # the request says what is wrong with it


def _names(metrics: Sequence[Metric]) -> list[str]:
    names = [metric.name for metric in metrics]
    return [name if names.count(name) == 1 else f"{name}-{number}" for number, name in enumerate(names, 1)]


def _outs(out: Path | None, names: list[str]) -> list[Path]:
    from surecut._files import require_folder

    if out is None:
        return []
    require_folder(out)
    if len(names) > 1 and "{metric}" not in out.name:
        raise ValueError(
            f"{len(names)} metrics make {len(names)} cuts: write --out with {{metric}} in the name, such as "
            f"{out.with_name(out.stem + '-{metric}' + (out.suffix or '.json'))}"
        )
    return [out.with_name(out.name.replace("{metric}", name)) for name in names]


with_our_help(app)  # at the end, when all commands are known
