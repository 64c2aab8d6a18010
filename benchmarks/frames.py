"""tune_frame beside the engines' own sums, at 10⁶ to 10⁸ rows of Parquet, and beside Spark's own threshold search.

Parts are measured one at a time (``--part files``, ``--part growth``, ``--part spark``, ``--part spark-groups``,
``--part groups``, ``--part sketch``; all by default) and kept in ``results/frames.json``; ``results/frames.md`` and the
plot are written from there. Data is drawn once and kept outside the repo, in ``--data``.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
DATA = Path.home() / ".cache" / "surecut" / "frames"
KINDS = ("easy", "heavy-tailed")
SIZES = (1_000_000, 10_000_000, 100_000_000)
TURNS = 5
BLOCK = 1 << 20
SPARK_ROWS = 10_000_000
GROUPS = {1_000: (6, 575), 1_000_000: (10, 1214)}
"""Groups in DuckDB, and what is aimed at: times DuckDB's own GROUP BY, and MiB."""
SPARK_GROUPED_ROWS = 50_000_000
SPARK_GROUPS = 12


def draw(random: np.random.Generator, rows: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels: probabilities of normal margins, or margins from a Cauchy distribution as they are."""
    margins = random.standard_normal(rows) if kind == "easy" else random.standard_cauchy(rows)
    probabilities = 0.5 + 0.5 * np.tanh((margins - 2) / 2)
    labels = random.random(rows) < probabilities
    return (probabilities if kind == "easy" else margins), labels.astype(np.int8)


def parquet(folder: Path, rows: int, kind: str) -> str:
    """The path of a Parquet file with so many rows, written once with PyArrow's defaults."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / f"{kind}-{rows}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng([rows, *kind.encode()])
        schema = pa.schema([("score", pa.float64()), ("label", pa.int8())])
        part = path.with_suffix(".part")
        with pq.ParquetWriter(part, schema) as writer:
            for start in range(0, rows, BLOCK):
                scores, labels = draw(random, min(BLOCK, rows - start), kind)
                writer.write_table(pa.table({"score": scores, "label": labels}, schema=schema))
        os.replace(part, path)
    return str(path)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def seconds(function: Callable[[], Any]) -> float:
    return timed(function)[0]


def measure_file(path: str) -> dict[str, Any]:
    """Interleaved medians: the cut of a file, and DuckDB's sum of its scores."""
    import duckdb

    from surecut import tune_frame

    passes: list[Any] = []
    count_reads(passes)

    def ours() -> Any:
        return tune_frame(path, label="label", score="score")

    def theirs() -> Any:
        return duckdb.connect().sql(f"SELECT sum(score), count(*) FROM '{path}'").fetchall()

    cut = ours()
    found = len(passes)
    theirs()
    turns = [(seconds(ours), seconds(theirs)) for _ in range(TURNS)]
    mine, sums = (statistics.median(times) for times in zip(*turns, strict=True))
    return {"seconds": mine, "sum": sums, "passes": found, "rows": cut.rows, "f1": cut.value}


def count_reads(passes: list[Any]) -> None:
    from surecut.sources.readers import DuckReader

    read = DuckReader.read

    def noted(self: DuckReader, within: Any = None) -> Any:
        passes.append(within)
        return read(self, within)

    DuckReader.read = noted  # type: ignore[method-assign]


def measure_memory(path: str) -> dict[str, float]:
    """The high-water mark of a process that does nothing but tune, in MiB."""
    from surecut import tune_frame

    tune_frame(path, label="label", score="score")
    return {"peak": peak_memory()}


def peak_memory() -> float:
    """The high-water mark of this process so far, in MiB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def spark_session() -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.memory", "4g").config("spark.log.level", "ERROR")
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()


def measure_spark(path: str) -> dict[str, Any]:
    """tune_frame on Spark, and MLlib's F-measure by threshold with its 1,000 bins, on the same rows."""
    from surecut import tune_frame, tune_threshold

    spark = spark_session()
    frame = spark.read.parquet(path)

    def ours() -> Any:
        return tune_frame(frame, label="label", score="score")

    def theirs() -> float:
        pairs = frame.selectExpr("score", "CAST(label AS DOUBLE) AS label")
        metrics = spark._jvm.org.apache.spark.mllib.evaluation.BinaryClassificationMetrics(pairs._jdf)
        best = max(metrics.fMeasureByThreshold().collect(), key=lambda pair: pair._2())
        return float(best._2())

    cold, cut = timed(ours)  # the session's first query, for which Java compiles
    mllib, approximate = timed(theirs)
    warm, again = timed(ours)
    collected = frame.toPandas()
    exact = tune_threshold(collected["label"], collected["score"])
    return {
        "seconds": cold,
        "warm": warm,
        "mllib": mllib,
        "f1": cut.value,
        "mllib_f1": approximate,
        "is_exact": (cut.threshold, cut.value) == (again.threshold, again.value) == (exact.threshold, exact.value),
    }


def grouped(path: str, groups: int) -> Any:
    """The rows of a file in DuckDB, in so many groups."""
    import duckdb

    return duckdb.connect().sql(f"SELECT *, hash(score) % {groups} AS grp FROM '{path}'")


def measure_groups(path: str, groups: int) -> dict[str, Any]:
    """Interleaved medians: a threshold for each group in DuckDB, and DuckDB's own count and sum by group."""
    from surecut import tune_frame

    rows = grouped(path, groups)

    def ours() -> Any:
        return tune_frame(rows, label="label", score="score", by="grp")

    def theirs() -> Any:
        return rows.query("frame", "SELECT grp, count(*), sum(score) FROM frame GROUP BY grp").to_arrow_table()

    cut = ours()
    theirs()
    turns = [(seconds(ours), seconds(theirs)) for _ in range(TURNS)]
    mine, own = (statistics.median(times) for times in zip(*turns, strict=True))
    return {"groups": len(cut), "seconds": mine, "own": own}


def measure_groups_memory(path: str, groups: int) -> dict[str, float]:
    """The high-water mark of a process that does nothing but tune by group, in MiB."""
    from surecut import tune_frame

    tune_frame(grouped(path, groups), label="label", score="score", by="grp")
    return {"peak": peak_memory()}


def measure_spark_groups(path: str) -> dict[str, float]:
    """tune_frame on Spark with and without groups, and Spark's own count and sum by group; the second turn of two."""
    from pyspark.sql import functions

    from surecut import tune_frame

    rows = spark_session().read.parquet(path)
    frame = rows.withColumn("grp", functions.pmod(functions.hash("score"), functions.lit(SPARK_GROUPS)))

    def tuned(**by: str) -> float:
        return seconds(lambda: tune_frame(frame, label="label", score="score", **by))

    def own() -> Any:
        return frame.groupBy("grp").agg(functions.count("*"), functions.sum("score")).collect()

    for _ in range(2):  # in the first one Java compiles
        found = {"whole": tuned(), "seconds": tuned(by="grp"), "own": seconds(own)}
    return found


def measure_sketch(path: str) -> dict[str, float]:
    """Rows per second into a ScoreSketch, its size, and the bracket that it gives."""
    import pyarrow.parquet as pq

    from surecut import ScoreSketch, tune_threshold

    table = pq.read_table(path)
    scores, labels = table["score"].to_numpy(), table["label"].to_numpy()
    ScoreSketch().update(labels, scores)
    sketch = ScoreSketch()
    taken = seconds(lambda: sketch.update(labels, scores))
    cut, best = sketch.best_cut("f1"), tune_threshold(labels, scores)
    return {
        "rows_per_second": len(scores) / taken,
        "bytes": len(sketch.to_bytes()),
        "lower": cut.lower,
        "best": best.value,
        "upper": cut.upper,
    }


MEASURES: dict[str, Callable[[str], dict[str, Any]]] = {
    "file": measure_file,
    "memory": measure_memory,
    "spark": measure_spark,
    "spark-groups": measure_spark_groups,
    "sketch": measure_sketch,
}
for _groups in GROUPS:
    MEASURES[f"groups-{_groups}"] = functools.partial(measure_groups, groups=_groups)
    MEASURES[f"groups-{_groups}-memory"] = functools.partial(measure_groups_memory, groups=_groups)


def probe(name: str, path: str) -> dict[str, Any]:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, "--probe", name, path]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])


def run(part: str, folder: Path, kind: str | None, rows: int | None) -> dict[str, Any]:
    kinds = [kind] if kind else KINDS
    if part == "files":
        found = {}
        for one in kinds:
            path = parquet(folder, SIZES[-1], one)
            found[one] = probe("file", path) | probe("memory", path)
        return found
    if part == "growth":
        sizes = [rows] if rows else SIZES[:-1]  # the largest are those of the part "files"
        return {f"{one} {size}": probe("file", parquet(folder, size, one)) for size in sizes for one in kinds}
    if part == "groups":
        path = parquet(folder, SPARK_ROWS, "easy")
        return {f"{one}": probe(f"groups-{one}", path) | probe(f"groups-{one}-memory", path) for one in GROUPS}
    if part == "spark-groups":
        return {"easy": probe(part, parquet(folder, SPARK_GROUPED_ROWS, "easy"))}
    return {"easy": probe(part, parquet(folder, SPARK_ROWS, "easy"))}


PARTS = ("files", "growth", "spark", "spark-groups", "groups", "sketch")


def with_largest(found: dict[str, Any]) -> dict[str, Any]:
    """What was measured of files of all sizes, by kind and size."""
    largest = {f"{kind} {SIZES[-1]}": one for kind, one in found.get("files", {}).items()}
    return found.get("growth", {}) | largest if "growth" in found else {}


def summary(found: dict[str, Any]) -> str:
    """One table of what was aimed at and what was measured."""
    rows = []
    for kind, one in found.get("files", {}).items():
        ratio = one["seconds"] / one["sum"]
        rows.append(
            (f"{SIZES[-1]:,} rows of Parquet, {kind}: times DuckDB's sum", "at most 4", f"{ratio:.1f}", ratio <= 4)
        )
        peak = one["peak"]
        rows.append(("the same: peak memory of the process, MiB", "below 1024", f"{peak:.0f}", peak < 1024))
    if spark := found.get("spark", {}).get("easy"):
        ratio = spark["mllib"] / spark["seconds"]
        name = f"{SPARK_ROWS:,} rows on Spark: MLlib's time over ours"
        rows.append((name, "at least 10", f"{ratio:.0f}", ratio >= 10))
        rows.append(("the same: exact", "yes", "yes" if spark["is_exact"] else "no", spark["is_exact"]))
    if spark := found.get("spark-groups", {}).get("easy"):
        ratio = spark["seconds"] / spark["whole"]
        name = f"{SPARK_GROUPED_ROWS:,} rows on Spark in {SPARK_GROUPS} groups: times the same without groups"
        rows.append((name, "at most 3", f"{ratio:.1f}", ratio <= 3))
    for groups, (times, peak) in GROUPS.items():
        if one := found.get("groups", {}).get(f"{groups}"):
            ratio = one["seconds"] / one["own"]
            name = f"{SPARK_ROWS:,} rows in DuckDB in {groups:,} groups: times its own GROUP BY"
            rows.append((name, f"at most {times}", f"{ratio:.1f}", ratio <= times))
            name = "the same: peak memory of the process, MiB"
            rows.append((name, f"at most {peak}", f"{one['peak']:.0f}", one["peak"] <= peak))
    if sketch := found.get("sketch", {}).get("easy"):
        millions = sketch["rows_per_second"] / 1e6
        rows.append(("ScoreSketch: million rows per second", "at least 10", f"{millions:.0f}", millions >= 10))
    table = "\n".join(f"| {what} | {aim} | {got} | {'yes' if met else 'NO'} |" for what, aim, got, met in rows)
    return f"| what | target | measured | met |\n|---|---:|---:|---|\n{table}"


def report(found: dict[str, Any]) -> str:
    lines = [
        "# Any size: times of tune_frame",
        f"Written by `python benchmarks/frames.py`. Python {platform.python_version()}, {platform.system()} "
        f"{platform.machine()}, {os.cpu_count()} cores. All input checks are on; the cut is exact. Times are medians "
        f"of {TURNS} turns that alternate with the engine's `SELECT sum(score), count(*)`, each with a fresh "
        "connection. *Easy* scores are probabilities of normal margins, *heavy-tailed* ones are Cauchy margins.",
    ]
    lines.append(summary(found))
    if files := found.get("files"):
        lines += [
            f"## {SIZES[-1]:,} rows of Parquet",
            "| scores | tune_frame | DuckDB's sum | ratio | passes | peak memory of the process |\n"
            "|---|---:|---:|---:|---:|---:|\n"
            + "\n".join(
                f"| {kind} | {one['seconds']:.2f} s | {one['sum']:.2f} s | {one['seconds'] / one['sum']:.1f}× | "
                f"{one['passes']} | {one['peak']:.0f} MiB |"
                for kind, one in files.items()
            ),
        ]
    if growth := with_largest(found):
        lines += [
            "## How the cost grows",
            "| scores | rows | tune_frame | DuckDB's sum | ratio |\n|---|---:|---:|---:|---:|\n"
            + "\n".join(
                f"| {kind} | {rows:,} | {one['seconds']:.3f} s | {one['sum']:.3f} s | "
                f"{one['seconds'] / one['sum']:.1f}× |"
                for kind in KINDS
                for rows in SIZES
                if (one := growth.get(f"{kind} {rows}"))
            ),
            "![Seconds by rows](frames.png)",
        ]
    if spark := found.get("spark", {}).get("easy"):
        lines += [
            f"## Spark `local[2]`, {SPARK_ROWS:,} rows",
            "| | seconds | best F1 found |\n|---|---:|---:|\n"
            f"| `tune_frame`, first query of the session | {spark['seconds']:.1f} | {spark['f1']:.7f} |\n"
            f"| `tune_frame`, again | {spark['warm']:.1f} | {spark['f1']:.7f} |\n"
            f"| MLlib's `fMeasureByThreshold`, 1,000 bins | {spark['mllib']:.1f} | {spark['mllib_f1']:.7f} |",
            f"One turn each; MLlib ran between the two. It takes {spark['mllib'] / spark['seconds']:.0f} and "
            f"{spark['mllib'] / spark['warm']:.0f} times as long (target: 10). Threshold and value of `tune_frame` are "
            f"those of `tune_threshold` on the collected rows: {'yes' if spark['is_exact'] else 'NO'}.",
        ]
    if spark := found.get("spark-groups", {}).get("easy"):
        lines += [
            f"## A threshold per group: {SPARK_GROUPED_ROWS:,} rows in {SPARK_GROUPS} groups on Spark `local[2]`",
            "| | seconds |\n|---|---:|\n"
            f"| `tune_frame` | {spark['whole']:.1f} |\n| `tune_frame(by=)` | {spark['seconds']:.1f} |\n"
            f"| Spark's own count and sum by group | {spark['own']:.1f} |",
            "One turn each, after one in which Java compiles.",
        ]
    if groups := found.get("groups"):
        lines += [
            f"## A threshold per group: {SPARK_ROWS:,} rows in DuckDB",
            "| groups | tune_frame | `SELECT key, count(*), sum(score) GROUP BY key` | ratio | peak memory |\n"
            "|---:|---:|---:|---:|---:|\n"
            + "\n".join(
                f"| {one['groups']:,} | {one['seconds']:.2f} s | {one['own']:.2f} s | "
                f"{one['seconds'] / one['own']:.1f}× | {one['peak']:.0f} MiB |"
                for one in groups.values()
            ),
            "Memory is that of a process that does nothing but tune once.",
        ]
    if sketch := found.get("sketch", {}).get("easy"):
        lines += [
            "## ScoreSketch",
            f"{sketch['rows_per_second'] / 1e6:.0f} million rows per second on one core; {sketch['bytes']:,} bytes for "
            f"{SPARK_ROWS:,} rows; bracket [{sketch['lower']:.6f}, {sketch['upper']:.6f}] around the best F1, "
            f"{sketch['best']:.6f}.",
        ]
    return "\n\n".join(lines) + "\n"


def plot(growth: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for what, key, colour in (("tune_frame", "seconds", "C0"), ("DuckDB's sum(score)", "sum", "0.6")):
        for kind, style in zip(KINDS, ("o-", "s--"), strict=True):
            rows = [size for size in SIZES if f"{kind} {size}" in growth]
            taken = [growth[f"{kind} {size}"][key] for size in rows]
            axes.loglog(rows, taken, style, color=colour, label=f"{what}, {kind}")
    axes.set(xlabel="rows of Parquet", ylabel="seconds")
    axes.legend(frameon=False)
    figure.savefig(RESULTS / "frames.png", dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--report", action="store_true", help="only write table and plot from what was measured")
    parser.add_argument("--draw", action="store_true", help="only draw the data")
    parser.add_argument("--probe", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        name, path = options.probe
        print(json.dumps(MEASURES[name](path)))
        return
    if options.draw:
        for kind in KINDS:
            for rows in SIZES:
                parquet(options.data, rows, kind)
        return
    RESULTS.mkdir(exist_ok=True)
    kept = RESULTS / "frames.json"
    found = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    for part in [] if options.report else options.part or PARTS:
        found[part] = found.get(part, {}) | run(part, options.data, options.kind, options.rows)
        kept.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if growth := with_largest(found):
        plot(growth)
    text = report(found)
    (RESULTS / "frames.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
