"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  if (!data.changes.length) return;
  const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
  const percent = (x) => (x === null ? "–" : Number((100 * x).toPrecision(3)) + " %");
  const decimal = (x) => (x === null ? "–" : x.toFixed(3));
  const pair = (title, part, written) => ({
    title,
    of: (l) => l[part][1],
    cell: (l) => {
      const [before, after] = l[part], cell = document.createDocumentFragment(), was = document.createElement("span");
      was.className = "was";
      was.textContent = `${written(before)} → `;
      cell.append(was, written(after));
      return cell;
    },
  });
  const columns = [
    { title: data.noun === "classes" ? "class" : "label", of: (l) => l.name, cell: (l) => l.name },
    { title: "positives", of: (l) => l.positives, cell: (l) => number.format(l.positives) },
    { title: "share", of: (l) => l.prior, cell: (l) => percent(l.prior) },
    pair("predicted", "predicted", percent),
    pair(data.metric, "value", decimal),
    pair("recall", "recall", decimal),
    pair("precision", "precision", decimal),
    { title: "changed", of: (l) => l.moved, cell: (l) => number.format(l.moved) },
  ];
  if (data.metric.toLowerCase() === "recall") columns.splice(4, 1);
  labelTable({ labels: data.changes, count: data.count, noun: data.noun, columns, column: 1 });
})();
