"""Memory and time of each command on rows that need not fit in memory: the largest resident set of its process.

``python benchmarks/memory.py`` draws 5·10⁷ rows into a Parquet file in a temporary folder, runs each command in a
process of its own, and writes benchmarks/results/memory.md. ``--rows`` draws another number.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RESULTS = Path(__file__).parent / "results" / "memory.md"
LIMIT = 1.5
"""GB that no command should need."""

GROUPS = 12
AT_ONCE = 1_000_000
DATA_SET = (
    "import pyarrow.dataset as ds, surecut; "
    "surecut.tune_frame(ds.dataset('rows.parquet'), label='y', score='p', by='g')"
)

COMMANDS = {
    "`surecut tune`": "tune rows.parquet --label y --score p --out cut.json",
    "`surecut tune --report`": "tune rows.parquet --label y --score p --report page.html",
    "`surecut tune --confidence`": "tune rows.parquet --label y --score p --confidence 0.95",
    "`surecut tune --constraint --confidence`": "tune rows.parquet --label y --score p --constraint precision>=0.5 "
    "--confidence 0.95 --out promised.json",
    "`surecut certify --method uniform`": "certify rows.parquet --label y --score p --cut cut.json --method uniform",
    "`surecut certify --method uniform`, promised constraints": "certify rows.parquet --label y --score p "
    "--cut promised.json --method uniform",
    "`surecut apply`": "apply rows.parquet --score p --cut cut.json --out predicted.parquet",
    "`surecut tune --by`": "tune rows.parquet --label y --score p --by g --out cuts.json",
    "`surecut apply --by`": "apply rows.parquet --score p --by g --cut cuts.json --out predicted.parquet",
}
"""What is run, in this order: later commands read the cuts of earlier ones."""


def draw(path: Path, rows: int) -> None:
    random = np.random.default_rng(0)
    names = pa.array([f"g{number}" for number in range(GROUPS)])
    schema = pa.schema([("y", pa.int8()), ("p", pa.float64()), ("g", pa.dictionary(pa.int8(), pa.string()))])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, AT_ONCE):
            size = min(AT_ONCE, rows - start)
            score = 1 / (1 + np.exp(3 - 2 * random.normal(size=size)))
            label = (random.random(size) < score).astype(np.int8)
            codes = pa.array(random.integers(0, GROUPS, size).astype(np.int8))
            group = pa.DictionaryArray.from_arrays(codes, names)
            writer.write_table(pa.table({"y": label, "p": score, "g": group}))


def measured(command: list[str], folder: str) -> tuple[float, float]:
    """GB and seconds of a process. A process of ours starts it, and asks for the largest of its children."""
    code = (
        "import resource, subprocess, sys, time; start = time.perf_counter(); "
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, time.perf_counter() - start)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=folder, check=True, capture_output=True, text=True
    )
    kilobytes, seconds = done.stdout.split()
    unit = 1 if sys.platform == "darwin" else 1024
    return int(kilobytes) * unit / 1e9, float(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000_000)
    rows = parser.parse_args().rows
    surecut = str(Path(sys.executable).with_name("surecut"))
    commands = {name: [surecut, *command.split()] for name, command in COMMANDS.items()}
    commands["`tune_frame(data_set, by=)`"] = [sys.executable, "-c", DATA_SET]
    with tempfile.TemporaryDirectory() as folder:
        draw(Path(folder) / "rows.parquet", rows)
        size = (Path(folder) / "rows.parquet").stat().st_size / 1e6
        lines = []
        for name, command in commands.items():
            memory, seconds = measured(command, folder)
            lines.append(f"| {name} | {memory:.2f} | {seconds:.0f} | {'met' if memory < LIMIT else 'missed'} |")
            print(lines[-1], flush=True)
    text = (
        "# Memory of each command\n\n"
        f"Written by `python benchmarks/memory.py`: {rows:,} rows of float64 scores, {GROUPS} groups, a Parquet file "
        f"of {size:.0f} MB. The largest resident set of the process, in GB; the target is below {LIMIT} GB.\n\n"
        "| command | GB | seconds | target |\n|---|---:|---:|---|\n" + "\n".join(lines) + "\n"
    )
    RESULTS.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
