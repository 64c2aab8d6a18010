"""Data files as people have them: compressed or not, damaged, absent."""

from __future__ import annotations

import bz2
import functools
import gzip
import hashlib
import http.server
import lzma
import os
import threading

import numpy as np
import pytest

from surecut import datasets
from surecut.datasets import JUDGE_SCORES, DataError, Origin, OriginFile, make_judged_answers

BINARY = b"2 1:0.5 3:-1\n1 2:3\n2\n1 1:1e3 2:-2.5 3:4\n"
MULTILABEL = b"0,2 1:0.5\n 2:1.5 3:2\n1 1:-1\n"
"""The second row has no label."""

PACKED = {"": bytes, ".bz2": bz2.compress, ".xz": lzma.compress, ".gz": gzip.compress}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of data, with a cache of its own, and two small data sets that are known."""
    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setenv("SURECUT_DATA", str(data))
    monkeypatch.setenv("SURECUT_CACHE", str(tmp_path / "cache"))
    binary = Origin((OriginFile("small", 4, 2),), features=3, positive=2)
    both = (OriginFile("many_train", 3, 3), OriginFile("many_test", 3, 3))
    monkeypatch.setitem(datasets.ORIGINS, "small", binary)
    monkeypatch.setitem(datasets.ORIGINS, "many", Origin(both, features=3, labels=3))
    return data


@pytest.mark.parametrize("ending", PACKED)
def test_binary_text_plain_or_compressed(folder, ending):
    (folder / f"small{ending}").write_bytes(PACKED[ending](BINARY))
    dataset = datasets.load("small")
    assert dataset.name == "small"
    assert dataset.test is None
    np.testing.assert_array_equal(dataset.train.y, [1, 0, 1, 0])
    np.testing.assert_array_equal(dataset.train.X.toarray(), [[0.5, 0, -1], [0, 3, 0], [0, 0, 0], [1e3, -2.5, 4]])
    assert dataset.rows is dataset.train


def test_multilabel_rows_may_have_no_label(folder):
    (folder / "many_train").write_bytes(MULTILABEL)
    (folder / "many_test.xz").write_bytes(lzma.compress(MULTILABEL))
    dataset = datasets.load("many")
    for part in (dataset.train, dataset.test):
        np.testing.assert_array_equal(part.y, [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
        np.testing.assert_array_equal(part.X.toarray(), [[0.5, 0, 0], [0, 1.5, 2], [-1, 0, 0]])
    assert dataset.rows.X.shape == (6, 3)
    np.testing.assert_array_equal(dataset.rows.y[3:], dataset.test.y)


def test_the_second_time_nothing_is_parsed(folder, monkeypatch):
    (folder / "small").write_bytes(BINARY)
    first = datasets.load("small")
    monkeypatch.setattr(datasets, "_parse", lambda *_: pytest.fail("parsed again"))
    again = datasets.load("small")
    assert (again.train.X != first.train.X).nnz == 0
    np.testing.assert_array_equal(again.train.y, first.train.y)
    assert again.train.y.dtype == first.train.y.dtype


def test_a_changed_file_and_a_damaged_cache_are_parsed_anew(folder):
    (folder / "small").write_bytes(BINARY)
    datasets.load("small")
    (folder / "small").write_bytes(BINARY.replace(b"0.5", b"0.25"))
    assert datasets.load("small").train.X[0, 0] == 0.25
    for parsed in datasets.cache_folder().glob("*.npz"):
        parsed.write_bytes(parsed.read_bytes()[:200])
    assert datasets.load("small").train.X[0, 0] == 0.25


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a folder that cannot be written to")
def test_a_cache_that_cannot_be_written_is_no_error(folder, tmp_path):
    (folder / "small").write_bytes(BINARY)
    (tmp_path / "cache").mkdir(mode=0o500)
    assert len(datasets.load("small").train.y) == 4


def test_the_folder_is_asked_before_the_cache(folder, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "small").write_bytes(BINARY.replace(b"0.5", b"7"))
    assert datasets.load("small").train.X[0, 0] == 7
    (folder / "small").write_bytes(BINARY)
    assert datasets.load("small").train.X[0, 0] == 0.5
    assert datasets.load("small", folder=tmp_path / "cache").train.X[0, 0] == 7
    assert datasets.is_present("small")
    assert not datasets.is_present("many")


@pytest.mark.parametrize(
    ("ending", "content", "reason"),
    [
        (".bz2", bz2.compress(BINARY)[:-5], "damaged or truncated"),
        (".xz", lzma.compress(BINARY)[:-5], "damaged or truncated"),
        (".gz", gzip.compress(BINARY)[:-5], "damaged or truncated"),
        (".bz2", BINARY, "damaged or truncated"),
        ("", BINARY[:-1], "truncated: its last line has no end"),
        ("", b"", "truncated"),
        ("", BINARY[: BINARY.index(b"1 2:3")], "expected 4 rows and 2 positive labels, got 1 and 1"),
        ("", BINARY.replace(b"2\n1 1", b"1\n1 1"), "expected 4 rows and 2 positive labels, got 4 and 1"),
        ("", BINARY.replace(b"3:-1", b"9:-1"), "not LIBSVM text with 3 features"),
        ("", BINARY.replace(b"3:-1", b"3:x"), "not LIBSVM text"),
        ("", b"<html>not found</html>\n", "not LIBSVM text"),
    ],
    ids=lambda part: None if isinstance(part, str) else f"{len(part)} bytes",  # the bytes of gzip hold the time
)
def test_a_damaged_file_is_named_and_never_half_loaded(folder, ending, content, reason):
    path = folder / f"small{ending}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=reason) as caught:
        datasets.load("small")
    assert str(path) in str(caught.value)
    assert not list(datasets.cache_folder().glob("*.npz"))


def test_labels_beyond_the_known_ones_are_refused(folder):
    (folder / "many_train").write_bytes(MULTILABEL.replace(b"0,2", b"0,3"))
    (folder / "many_test").write_bytes(MULTILABEL)
    with pytest.raises(DataError, match="labels from 0 to 2"):
        datasets.load("many")


def test_an_absent_file_without_an_address_says_what_to_put_where(folder):
    with pytest.raises(FileNotFoundError, match=r"small is not here, .*put small .*\.bz2.* into") as caught:
        datasets.load("small")
    assert str(folder) in str(caught.value)


def test_all_absent_files_are_named_at_once(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match="put many_train and many_test "):
        datasets.load("many")
    (folder / "many_train").write_bytes(MULTILABEL)
    with pytest.raises(FileNotFoundError, match=r"many_test is not here.* put many_test "):
        datasets.load("many")
    monkeypatch.delenv("SURECUT_DATA")
    with pytest.raises(FileNotFoundError, match="or set SURECUT_DATA to the folder that has it"):
        datasets.load("many")


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(ValueError, match=r"'covertype': did you mean 'covtype'\? The names are covtype, gisette"):
        datasets.load("covertype")


@pytest.fixture
def server(tmp_path):
    """A server on this machine, and its address."""
    pytest.importorskip("pooch")
    (tmp_path / "served").mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            """Say nothing."""

    handler = functools.partial(Quiet, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield tmp_path / "served", f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


def with_address(url, sha256=None):
    return Origin((OriginFile("small", 4, 2, url, sha256),), features=3, positive=2)


def test_a_download_is_checked_and_kept(folder, server, monkeypatch):
    served, address = server
    content = bz2.compress(BINARY)
    (served / "small.bz2").write_bytes(content)
    url, digest = f"{address}/small.bz2", hashlib.sha256(content).hexdigest()
    monkeypatch.setitem(datasets.ORIGINS, "small", with_address(url, "0" * 64))
    with pytest.raises(DataError, match=r"small\.bz2 is not what it should be"):
        datasets.load("small")
    assert not datasets.is_present("small")
    monkeypatch.setitem(datasets.ORIGINS, "small", with_address(url, digest))
    assert len(datasets.load("small").train.y) == 4
    (served / "small.bz2").unlink()
    assert len(datasets.load("small").train.y) == 4
    assert (datasets.cache_folder() / "small.bz2").read_bytes() == content


def test_a_download_that_fails_says_what_to_put_where(folder, server, monkeypatch):
    _, address = server
    monkeypatch.setitem(datasets.ORIGINS, "small", with_address(f"{address}/absent.bz2"))
    with pytest.raises(FileNotFoundError, match=r"could not be downloaded .*put small .* into"):
        datasets.load("small")


def test_without_pooch_the_extra_is_named(folder, monkeypatch):
    monkeypatch.setitem(datasets.ORIGINS, "small", with_address("http://127.0.0.1:9/small.bz2"))
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(FileNotFoundError, match=r"put small .*pip install 'surecut\[study\]'"):
        datasets.load("small")


@pytest.mark.parametrize("name", datasets.ORIGINS)
def test_the_shapes_are_those_of_the_papers_tables(name):
    """Read on this machine where the files are; the loader itself refuses other row and label counts."""
    if not datasets.is_present(name):
        pytest.skip(f"the files of {name} are not here: set SURECUT_DATA to their folder")
    dataset = datasets.load(name)
    rows, features, labels = {
        "covtype": (581_012, 54, ()),
        "gisette": (7_000, 5_000, ()),
        "mnist49": (7_000, 784, ()),
        "scene": (1_211 + 1_196, 294, (6,)),
        "yeast": (1_500 + 917, 103, (14,)),
        "mediamill": (30_993 + 12_914, 120, (101,)),
    }[name]
    assert dataset.rows.X.shape == (rows, features)
    assert dataset.rows.y.shape == (rows, *labels)
    assert set(np.unique(dataset.rows.y)) == {0, 1}
    if name == "mediamill":
        assert [int((part.y.sum(axis=1) == 0).sum()) for part in (dataset.train, dataset.test)] == [1_189, 541]


def test_judged_answers_are_what_their_docstring_says():
    y_true, y_score, source = make_judged_answers(200_000, random_state=1)
    assert sorted(set(y_score.tolist())) == list(JUDGE_SCORES)
    for name, share, right in (("handbook", 2 / 3, 0.7), ("forum", 1 / 3, 0.45)):
        inside = source == name
        assert abs(inside.mean() - share) < 0.005
        assert abs(y_true[inside].mean() - (0.98 * right + 0.02 * (1 - right))) < 0.01
    agrees = (y_score >= 0.65) == y_true
    assert agrees[source == "handbook"].mean() > agrees[source == "forum"].mean() + 0.05


def test_judged_answers_follow_the_seed():
    first, again, other = (make_judged_answers(random_state=seed) for seed in (0, 0, 1))
    assert len(first.y_true) == 300
    assert all(map(np.array_equal, first, again))
    assert not np.array_equal(first.y_score, other.y_score)
    generator = np.random.default_rng(0)
    assert np.array_equal(make_judged_answers(random_state=generator).y_score, first.y_score)
    assert not np.array_equal(make_judged_answers(random_state=generator).y_score, first.y_score)


def test_a_number_of_answers_below_one_is_refused():
    with pytest.raises(ValueError, match="n_samples= must be at least 1, got 0"):
        make_judged_answers(0)
