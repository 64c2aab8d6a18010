"""The page of k labels a row: its numbers in Python, and the page in a real browser."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from surecut import tune_top_k
from surecut.decisions.class_changes import ClassChanges
from surecut.report import save_html, summarize_top_k, to_html
from surecut.report import top_k as page_of_top_k

jinja2 = pytest.importorskip("jinja2", reason="the page needs jinja2")


def classes(rows=400, size=4, seed=0, **options):
    random = np.random.default_rng(seed)
    share = np.arange(size, 0, -1) ** 2
    y = random.choice(size, rows, p=share / share.sum())
    logits = random.normal(size=(rows, size)) + np.log(share)
    logits[np.arange(rows), y] += 1.2
    scores = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    names = np.array([f"class {i:02}" for i in range(size)])
    return tune_top_k(names[y], scores, k=1, classes=names, **options)


def tags(labels=40, seed=0, names=None):
    random = np.random.default_rng(seed)
    truth = random.random((200, labels)) < 0.15
    scores = random.random((200, labels)) + 0.4 * truth
    return tune_top_k(truth, scores, k=3, labels=names or [f"tag {i}" for i in range(labels)])


class TestSummary:
    def test_it_holds_both_confusion_matrices(self):
        rule = classes(reject_cost=0.4)
        summary = summarize_top_k(rule, title="Classes")
        matrix = summary["matrix"]
        assert matrix["before"] == rule.baseline.matrix.tolist()
        assert matrix["after"] == rule.matrix.tolist()
        assert matrix["right"] == [0, 1, 2, 3]
        assert matrix["others"] == [4]
        assert matrix["actions"][-1] == "reject"
        assert (summary["value"], summary["before"]) == (-rule.value, -rule.baseline.value)
        assert json.loads(json.dumps(summary, allow_nan=False)) == json.loads(json.dumps(summary))

    def test_each_label_is_there_before_and_after(self):
        rule = tags()
        changes = ClassChanges.of(rule)
        by_name = {one["name"]: one for one in summarize_top_k(rule)["changes"]}
        assert by_name.keys() == set(rule.labels)
        for i, name in enumerate(rule.labels):
            for part in ("predicted", "value", "recall", "precision"):
                known = [
                    None if np.isnan(one) else pytest.approx(one, rel=1e-5) for one in getattr(changes, part)[:, i]
                ]
                assert list(by_name[name][part]) == known
            assert by_name[name]["positives"] == rule.confusion.positives[i]
        assert summarize_top_k(rule)["matrix"] is None
        assert summarize_top_k(rule)["confused"] == []

    def test_of_many_labels_those_that_matter_are_there(self, monkeypatch):
        monkeypatch.setattr(page_of_top_k, "MOST", 10)
        rule = tags()
        summary = summarize_top_k(rule)
        names = {one["name"] for one in summary["changes"]}
        assert len(names) == 10
        assert {rule.labels[i] for i in ClassChanges.of(rule).most(5)} <= names
        assert {rule.labels[i] for i in np.argsort(-rule.confusion.positives, kind="stable")[:5]} <= names
        assert "10 labels are in the table" in to_html(summary)
        assert "are in the table" not in to_html(summarize_top_k(tags(5)))

    def test_confusions_that_change_most_come_first(self):
        rule = classes(size=6)
        found = summarize_top_k(rule)["confused"]
        change = [abs(one["after"] - one["before"]) for one in found]
        assert change == sorted(change, reverse=True)
        wrong = np.abs(rule.matrix - rule.baseline.matrix)[~np.eye(6, dtype=bool)]
        assert change == np.sort(wrong)[::-1][: len(change)].tolist()
        for one in found:
            i, j = rule.labels.index(one["true"]), rule.labels.index(one["predicted"])
            assert i != j
            assert (one["before"], one["after"]) == (rule.baseline.matrix[i, j], rule.matrix[i, j])

    def test_large_matrices_are_not_drawn(self, monkeypatch):
        monkeypatch.setattr(page_of_top_k, "READABLE", 3)
        summary = summarize_top_k(classes())
        assert summary["matrix"] is None
        assert summary["confused"]
        assert 'id="before"' not in to_html(summary)

    def test_actions_that_are_no_classes_have_no_table_of_classes(self):
        rule = classes(costs={"wait": [0, 1, 2, 5], "treat": 1.0})
        page = to_html(summarize_top_k(rule))
        assert summarize_top_k(rule)["changes"] == []
        assert 'id="after"' in page
        assert "Find one of" not in page

    def test_the_page_needs_no_network_and_names_are_text(self, tmp_path):
        page = to_html(summarize_top_k(tags(names=[f"<b>{i}</b>" for i in range(40)]), title="<tags>"))
        assert not set(re.findall(r"https?://[^\s\"'<]+", page))
        assert "<b>0" not in page
        assert "&lt;tags&gt;" in page
        save_html(summarize_top_k(tags()), tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text(encoding="utf-8") == to_html(summarize_top_k(tags()))

    def test_words_are_on_the_page(self):
        rule = classes()
        page = to_html(summarize_top_k(rule))
        assert f"instead of {rule.baseline.value:.4f} by the largest score" in page
        assert page.count("<li>Class &#39;class 0") == 4


class TestPage:
    def test_matrices_are_pythons(self, load):
        rule = classes(reject_cost=0.4)
        page = load(summarize_top_k(rule))
        for place, matrix in (("#before", rule.baseline.matrix), ("#after", rule.matrix)):
            rows = page.locator(f"{place} tbody tr").all()
            found = [[cell.split()[0] for cell in row.locator("td").all_inner_texts()] for row in rows]
            assert found == [[f"{count:,}" for count in row] for row in matrix.tolist()]
            assert page.locator(f"{place} td.right").count() == 4
            assert page.locator(f"{place} td.other").count() == 4
        assert page.inner_text("#headline") == f"{-rule.value:.4f}"

    def test_the_table_is_sorted_and_searched(self, load):
        rule = tags()
        page = load(summarize_top_k(rule))
        rows = page.locator(".labels tbody tr")
        assert rows.count() == 40
        heads = page.locator(".labels thead button").all_inner_texts()
        assert [head.strip() for head in heads] == [
            *("label", "positives", "share", "predicted", "F1", "recall", "precision", "changed")
        ]
        page.locator(".labels thead button", has_text="F1").click()
        values = [text.split(" → ") for text in page.locator(".labels tbody td:nth-child(5)").all_inner_texts()]
        after = [float(one[1]) for one in values]
        assert after == sorted(after, reverse=True)
        assert after == [float(f"{one:.3f}") for one in sorted(rule.per_label, reverse=True)]
        page.locator(".labels thead button", has_text="F1").click()
        assert page.locator(".labels th[aria-sort=ascending]").inner_text().strip() == "F1"
        page.fill("#filter", "TAG 39")
        assert page.locator(".labels tbody th").all_inner_texts() == ["tag 39"]
        assert page.inner_text("#count") == "1 of 40 labels"

    def test_a_class_that_was_never_predicted_has_no_precision_before(self, load):
        rule = tune_top_k(["a", "a", "a", "b"], [[0.75, 0.25], [0.9, 0.1], [0.8, 0.2], [0.6, 0.4]], k=1)
        page = load(summarize_top_k(rule))
        cells = page.locator(".labels tbody tr", has_text="b").locator("td").all_inner_texts()
        assert cells == ["1", "25 %", "0 % → 25 %", "0.000 → 1.000", "0.000 → 1.000", "– → 1.000", "1"]

    def test_actions_alone(self, load):
        page = load(summarize_top_k(classes(costs={"wait": [0, 1, 2, 5], "treat": 1.0})))
        assert page.locator("#after tbody tr").count() == 4
        assert page.locator(".labels").count() == 0

    @pytest.mark.parametrize("width", [360, 1280])
    @pytest.mark.parametrize("rule", [lambda: classes(size=20, rows=2000), tags], ids=["classes", "tags"])
    def test_nothing_is_wider_than_the_window(self, load, width, rule):
        page = load(summarize_top_k(rule()), viewport={"width": width, "height": 700}, color_scheme="dark")
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")

    def test_it_can_be_read_without_a_script(self, browser, tmp_path):
        save_html(summarize_top_k(classes()), tmp_path / "page.html")
        page = browser.new_context(java_script_enabled=False).new_page()
        page.goto((tmp_path / "page.html").as_uri())
        assert page.locator("#before tbody tr").count() == 4
        assert "it needs JavaScript" in page.inner_text("noscript")
        page.context.close()
