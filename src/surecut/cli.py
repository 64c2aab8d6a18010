"""The command line: ``surecut …``. A command loads what it needs when it is run.

Exit codes: 0 done; 1 the data or the options do not fit, and a sentence on standard error says why; 2 an option is
misspelt or missing; 3 `check` found a change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from surecut.study.commands import app as study

if TYPE_CHECKING:
    from surecut.cut import Cut
    from surecut.metrics import Metric

app = typer.Typer(
    help="Cut the scores of a classifier where its metric is best: exactly, at any size.",
    epilog="Exit codes: 0 done; 1 the data or the options do not fit; 2 an option is misspelt; 3 check found a change.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(study, name="study")


class Format(StrEnum):
    """How results are printed."""

    table = "table"
    json = "json"


class Missing(StrEnum):
    """What to do with rows that lack a label or a score."""

    error = "error"
    drop = "drop"


FILE = Annotated[
    str, typer.Argument(metavar="FILE", help="CSV, TSV, Parquet or JSON lines; a quoted pattern 'day-*.csv'; or -.")
]
LABEL = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of labels.", show_default=False)]
SCORE = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of scores.", show_default=False)]
WEIGHT = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of weights.", show_default=False)]
POS_LABEL = Annotated[
    str | None, typer.Option(metavar="VALUE", help="The label that is positive.", show_default="1, true, yes")
]
CUT = Annotated[Path, typer.Option(metavar="PATH", help="A cut that tune saved.", show_default=False)]
MISSING = Annotated[Missing, typer.Option(help="Rows without a label or a score.")]
FORMAT = Annotated[Format, typer.Option("--format", help="A table for people, JSON for programs.")]


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


@contextmanager
def _explained(context: typer.Context) -> Iterator[None]:
    """A user's mistake gets a sentence and exit code 1; with --debug, the traceback."""
    try:
        yield
    except (ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        if context.obj:
            raise
        typer.secho(f"surecut: {error}", fg="red", err=True)
        raise typer.Exit(1) from None


@app.command(
    epilog="Examples:\n\n"
    "surecut tune scores.csv --label y --score p --out cut.json --report page.html\n\n"
    'surecut tune scores.parquet --metric recall --constraint "precision>=0.9"\n\n'
    'surecut tune scores.csv --metric "utility(fp=-2, fn=-100)" --prior 0.02'
)
def tune(
    context: typer.Context,
    file: FILE,
    label: LABEL = None,
    score: SCORE = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="What the cut is best for; repeat for several. See surecut metrics.", show_default="f1"),
    ] = None,
    weight: WEIGHT = None,
    pos_label: POS_LABEL = None,
    constraint: Annotated[
        list[str] | None,
        typer.Option(help='Such as "precision>=0.9" or "predicted_positive_rate<=0.01"; repeat for several.'),
    ] = None,
    prior: Annotated[
        float | None, typer.Option(help="Share of positives where the cut will be used, if it is another.")
    ] = None,
    missing: MISSING = Missing.error,
    out: Annotated[
        Path | None, typer.Option(help="Save the cut as JSON; with several metrics write {metric} into the name.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Save a page to explore, as HTML.")] = None,
    output: FORMAT = Format.table,
) -> None:
    """Find the threshold at which a metric is best.

    FILE holds labels and scores of rows that the model was not trained on. `score >= threshold` is positive.
    """
    from surecut.cut import require_folder

    with _explained(context):
        metrics = [_metric(one) for one in metric or ["f1"]]
        names = _names(metrics)
        outs = _outs(out, names)
        for path in [*outs, *([report] if report else [])]:
            require_folder(path)

        from surecut import printing
        from surecut.files import Table
        from surecut.tally import ScoreTally

        with printing.working(f"reading {file}"), Table(file) as opened:
            rows = opened.rows(label=label, score=score, weight=weight, pos_label=pos_label, missing=missing)
        with printing.working(f"tuning on {len(rows):,} rows"):
            tally = None
            if prior is not None or report is not None:
                tally = ScoreTally.from_scores(rows.is_positive, rows.scores, sample_weight=rows.weights)
                tally = tally if prior is None else tally.with_prior(prior)
                cuts = [tally.best_cut(one, constraint) for one in metrics]
            else:
                from surecut.tuning import tune_threshold

                tuned = tune_threshold(
                    rows.is_positive, rows.scores, metric=metrics, sample_weight=rows.weights, constraint=constraint
                )
                cuts = list(tuned.values())
        for path, cut in zip(outs, cuts, strict=False):
            cut.save(path)
        if report is not None and tally is not None:
            from surecut.report import save_html, summarize

            title = "Standard input" if file == "-" else Path(file).name
            save_html(summarize(tally, cut=cuts[0], metrics=metrics[1:], title=title), report)
        if output is Format.json:
            printing.as_json(
                {
                    "file": file,
                    "rows": len(rows),
                    "dropped": rows.dropped,
                    "label": rows.label,
                    "positive": rows.positive,
                    "score": rows.score,
                    "cuts": [cut.to_dict() for cut in cuts],
                }
            )
            return
        _tell_rows(rows, cuts[0])
        printing.table(printing.CUT_HEADINGS, [printing.cut_cells(cut) for cut in cuts])
        for path in outs:
            printing.line(f"cut saved: {path}")
        if report is not None:
            printing.line(f"page saved: {report}")


@app.command(
    epilog="Example:\n\nsurecut apply new.csv --cut cut.json --score p --out predictions.parquet",
)
def apply(
    context: typer.Context,
    file: FILE,
    cut: CUT,
    out: Annotated[Path, typer.Option(help="Where to write: .csv, .tsv, .parquet or .jsonl.", show_default=False)],
    score: SCORE = None,
    name: Annotated[str, typer.Option(help="The new column.")] = "predicted",
    missing: Annotated[
        Missing, typer.Option(help="Rows without a score: an error, or drop, which leaves their prediction empty.")
    ] = Missing.error,
) -> None:
    """Add a column that says which rows are cut positive."""
    with _explained(context):
        from surecut import printing
        from surecut.cut import Cut
        from surecut.files import SCORE_NAMES, Table, TableError, missing_sql

        loaded = Cut.load(cut)
        with printing.working(f"applying the cut to {file}"), Table(file) as opened:
            column = opened.column(score, "score", SCORE_NAMES)
            number = opened.number(column)
            lacking = opened.count(missing_sql(number, is_number=True))
            if lacking and missing is Missing.error:
                raise TableError(
                    f"{lacking:,} rows of {opened.name} have no score in {column!r}: fill them, or say --missing drop, "
                    "which leaves their prediction empty"
                )
            predicted = loaded.to_sql_of(number, "duckdb")
            rows = opened.write(
                {name: f"CASE WHEN NOT {missing_sql(number, is_number=True)} THEN {predicted} END"}, out
            )
        printing.line(f"{rows:,} rows with column {name!r}: {out}")


@app.command(epilog="Example:\n\nsurecut metrics --prior 0.02 --optimum 0.6")
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
        from surecut import printing

        if not (0 < prior < 1 and optimum > 0):
            raise ValueError(f"expected 0 < prior < 1 and optimum > 0, got {prior} and {optimum}")
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


@app.command()
def demo(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("surecut-demo.png"),
    seed: Annotated[int, typer.Option(min=0, help="Which random split of the data.")] = 0,
) -> None:
    """Show on real data what a tuned cut is worth: six metrics, at 0.5 and at their own cut."""
    with _explained(context):
        from surecut import demo as story

        story.show(out, seed)


def _metric(text: str) -> Metric:
    """A metric by its name, or by its name with parameters: ``utility(fp=-2, fn=-100)``."""
    from surecut.metrics import WITH_PARAMETERS, get_metric

    match = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", text)
    if match is None or match.group(1).lower() not in WITH_PARAMETERS:
        return get_metric(text)
    name, listed = match.group(1).lower(), match.group(2)
    pairs = re.findall(r"(\w+)\s*=\s*([-+.\deE]+)", listed)
    try:
        if re.sub(r"\w+\s*=\s*[-+.\deE]+", "", listed).strip(" ,"):
            raise ValueError("each parameter must read name=number")
        return WITH_PARAMETERS[name](**{key: float(value) for key, value in pairs})
    except TypeError as error:
        raise ValueError(f"cannot make the metric {text!r}: {str(error).partition(') ')[2] or error}") from None
    except ValueError as error:
        raise ValueError(f"cannot make the metric {text!r}: {error}") from None


def _names(metrics: list[Metric]) -> list[str]:
    names = [metric.name for metric in metrics]
    return [name if names.count(name) == 1 else f"{name}-{number}" for number, name in enumerate(names, 1)]


def _outs(out: Path | None, names: list[str]) -> list[Path]:
    if out is None:
        return []
    if len(names) > 1 and "{metric}" not in out.name:
        raise ValueError(
            f"{len(names)} metrics make {len(names)} cuts: write --out with {{metric}} in the name, such as "
            f"{out.with_name(out.stem + '-{metric}' + (out.suffix or '.json'))}"
        )
    return [out.with_name(out.name.replace("{metric}", name)) for name in names]


def _tell_rows(rows: Any, cut: Cut) -> None:
    """What was read, in a line or two."""
    from surecut import printing

    positives = int(rows.is_positive.sum())
    dropped = f" ({rows.dropped:,} rows without a value were dropped)" if rows.dropped else ""
    printing.line(
        f"{len(rows):,} rows{dropped}, {positives / len(rows):.2%} positive ({rows.label} = {rows.positive}); "
        f"score in {rows.score!r}"
        + (f"; tuned for a share of {cut.prior:g}" if cut.prior_given else "")
        + (f"; subject to {' and '.join(cut.constraints)}" if cut.constraints else "")
        + "\n"
    )
