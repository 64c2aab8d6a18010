(() => {
  // How many false alarms a metric trades for one missed positive where its value is `value`: the ratio of its slopes.
  const trade = (metric, value, given) => {
    if (metric.kind !== "cells") return NaN;
    const prior = given === null ? data.prior : given;
    const [n, d] = [metric.numerator, metric.denominator].map((cells) => weights(cells, prior, 1 - prior));
    const alarm = value * (d[1] - d[3]) - (n[1] - n[3]), miss = value * (d[2] - d[0]) - (n[2] - n[0]);
    return miss / alarm;
  };

  // --- What is asked.

  const worth = { tp: 0, fp: -1, fn: -10, tn: 0 };
  const none = [0, 0, 0, 0];
  const costs = {
    name: "costs", title: "Costs of your own", formula: "mean worth of a row", kind: "cells", fixed_prior: false,
    numerator: { constant: none, positives: none, negatives: none },
    denominator: { constant: [1, 1, 1, 1], positives: none, negatives: none },
  };
  const metrics = [...data.metrics, costs];
  const start = { metric: data.chosen.metric, at: data.chosen.at, prior: data.given_prior };
  const state = { metric: null, at: 0, prior: null, axis: "score", best: null };

  const flagged = (i) => { const c = atPrior(counts(i), state.prior); return (c.tp + c.fp) / (c.tp + c.fp + c.fn + c.tn); };
  const precision = (i) => { const c = atPrior(counts(i), state.prior); return rate(c.tp, c.tp + c.fp); };
  const abscissa = (i) => (state.axis === "share" ? 1 - flagged(i) : Math.min(Math.max(thresholds[i], data.axis[0] - 1e-3 * (data.axis[1] - data.axis[0])), data.axis[1] + 1e-3 * (data.axis[1] - data.axis[0])));
  const curve = new Chart("curve", { height: 300 });
  const histogram = new Chart("histogram", { height: 190 });
  const roc = new Chart("roc", { square: true });
  const pr = new Chart("pr", { square: true });
  curve.onPick = histogram.onPick = (x) => move(nearest((i) => Math.abs(curve.px(abscissa(i)) - x)));
  roc.onPick = (x, y) => move(nearest((i) => Math.hypot(roc.px(fall(i)) - x, roc.py(recall(i)) - y)));
  pr.onPick = (x, y) => move(nearest((i) => Math.hypot(pr.px(recall(i)) - x, pr.py(precision(i)) - y)));

  const all = [...Array(size).keys()];
  const draw = () => {
    const range = state.axis === "share" ? [0, 1] : data.axis;
    const xLabel = state.axis === "share" ? "share of the rows not flagged" : "threshold on the score";
    const values = state.best.values.filter((v) => Number.isFinite(v));
    let low = Math.min(...values, 0), high = Math.max(...values, state.metric === costs ? low : 1);
    if (state.metric === costs) { high = Math.max(...values); low = Math.min(...values); const room = (high - low || 1) * 0.06; low -= room; high += room; }
    curve.begin(range, [low, high], { x: xLabel, percentX: state.axis === "share" }, `${state.metric.title} at every threshold. Best ${shown(state.best.value)} at threshold ${short(thresholds[state.best.at])}.`);
    const hasContext = !["precision", "recall", "costs"].includes(state.metric.name) && data.positives > 0;
    byId("legend-title").textContent = state.metric.title;
    byId("legend-context").hidden = !hasContext;
    if (hasContext) {
      curve.path(all.map((i) => [abscissa(i), precision(i)]), { class: "context" }, true);
      curve.path(all.map((i) => [abscissa(i), recall(i)]), { class: "context dashed" }, true);
    }
    const band = data.bands && state.prior === data.given_prior ? data.bands[state.metric.name] : null;
    if (band) curve.area(all, abscissa, band);
    byId("band-note").hidden = !band;
    drawSpread();
    curve.path(all.map((i) => [abscissa(i), state.best.values[i]]), { class: "main" }, true);

    const edges = data.histogram.edges;
    const [up, down] = classShares();
    if (state.axis === "score") {
      const top = Math.max(...up, ...down);
      histogram.begin(range, [-top, top], { x: "score; bars are shares of their own class", percentY: true }, "Histogram of the scores, positives upward, negatives downward.");
      bars(histogram, edges.slice(0, -1).map((e, k) => [e, edges[k + 1]]), up, down);
    } else {
      const step = 1 / 40, cells = [];
      for (let k = 0; k < 40; k++) cells.push([k * step, (k + 1) * step]);
      const of = (count, whole) => {
        const filled = cells.map(() => 0);
        for (let i = 1; i < size; i++) {
          const a = 1 - flagged(i), b = 1 - flagged(i - 1), weight = rate(count[i] - count[i - 1], whole) || 0;
          for (let k = Math.max(0, Math.floor(a * 40)); k < 40 && k * step < b; k++) filled[k] += weight * (Math.min(b, (k + 1) * step) - Math.max(a, k * step)) / (b - a || 1);
        }
        return filled;
      };
      const upper = of(data.grid.tp, data.positives), lower = of(data.grid.fp, data.negatives), top = Math.max(...upper, ...lower);
      histogram.begin(range, [-top, top], { x: "rank; bars are shares of their own class", percentX: true, percentY: true }, "Histogram of the ranks, positives upward, negatives downward.");
      bars(histogram, cells, upper, lower);
    }
    roc.begin([0, 1], [0, 1], { x: "false positive rate", y: "true positive rate" }, "ROC curve, the best cut and this cut.");
    roc.path([[0, 0], [1, 1]], { class: "context dashed" });
    roc.path(all.map((i) => [fall(i), recall(i)]), { class: "main" });
    pr.begin([0, 1], [0, 1], { x: "recall", y: "precision" }, "Precision against recall, the best cut and this cut.");
    pr.path(all.map((i) => [recall(i), precision(i)]), { class: "main" });
  };
  // Where resamples put a stable cut: known for the metric and the prior that it was tuned for.
  const spread = data.chosen.stability;
  const drawSpread = () => {
    if (!spread) return;
    const isKnown = state.metric.name === start.metric && state.prior === start.prior;
    byId("spread-note").hidden = !isKnown;
    if (!isKnown) return;
    const at = (text) => {
      const t = typeof text === "string" ? infinities[text] : text;
      if (state.axis === "score") return curve.px(Math.min(Math.max(t, data.axis[0]), data.axis[1]));
      return curve.px(abscissa(Math.max(0, thresholds.findLastIndex((threshold) => threshold >= t))));
    };
    const bottom = curve.height - curve.margin.bottom;
    const rectangle = (name, [low, high], y, height) =>
      element("rect", { class: name, x: at(low), width: Math.max(1, at(high) - at(low)), y, height }, curve.layer);
    const [lowest, lowerQuarter, , upperQuarter, highest] = spread.quantiles;
    rectangle("spread", [lowest, highest], curve.margin.top, bottom - curve.margin.top);
    rectangle("spread half", [lowerQuarter, upperQuarter], curve.margin.top, bottom - curve.margin.top);
    rectangle("near-optimal", spread.near_optimal, bottom - 5, 5);
  };
  const drawLive = () => {
    const here = abscissa(state.at), top = state.best;
    for (const chart of [curve, histogram]) {
      chart.live.replaceChildren();
      const x = chart.px(here);
      element("line", { class: "cut", x1: x, x2: x, y1: chart.margin.top, y2: chart.height - chart.margin.bottom }, chart.live);
      element("path", { class: "handle", d: `M${x - 7} ${chart.margin.top - 8}h14l-7 11z` }, chart.live);
    }
    curve.dot(abscissa(top.at), top.value, "best", 6);
    curve.dot(here, top.values[state.at], "here", 5.5);
    for (const [bar, centre] of histogram.bars) bar.classList.toggle("off", centre < here);
    roc.live.replaceChildren(); pr.live.replaceChildren();
    roc.dot(fall(top.at), recall(top.at), "best", 6); roc.dot(fall(state.at), recall(state.at), "here", 5.5);
    pr.dot(recall(top.at), precision(top.at), "best", 6); pr.dot(recall(state.at), precision(state.at), "here", 5.5);
  };

  // --- Telling.

  const tell = () => {
    const metric = state.metric, here = counts(state.at), top = counts(state.best.at);
    const value = state.best.values[state.at], threshold = thresholds[state.at], lost = state.best.value - value;
    byId("metric-title").textContent = metric === costs ? "Worth of a row" : metric.title;
    byId("value").textContent = shown(value);
    byId("value").dataset.exact = String(value);
    byId("outcome").dataset.best = String(state.best.value);
    byId("outcome").dataset.bestThreshold = String(thresholds[state.best.at]);
    const versus = byId("versus"), isBest = state.at === state.best.at;
    versus.classList.toggle("at-best", isBest);
    versus.textContent = isBest ? "This is the best cut." :
      `The best is ${shown(state.best.value)}, at ${short(thresholds[state.best.at])}: this cut ` + (Number.isNaN(value) ? "has no value." : lost < 5e-5 * Math.abs(state.best.value) ? "is as good." : `loses ${shown(lost)}.`);
    const whole = { tp: data.positives, fn: data.positives, fp: data.negatives, tn: data.negatives };
    for (const cell of ORDER) {
      byId(cell).innerHTML = `${group.format(here[cell])}<small>${percent(rate(here[cell], whole[cell]))}</small>`;
    }
    byId("threshold").value = threshold === Infinity ? "nothing flagged" : String(threshold);
    byId("rule").textContent = threshold === Infinity ? "predict nothing" : `score >= ${threshold}`;
    const slider = byId("slider");
    slider.value = String(size - 1 - state.at);
    slider.setAttribute("aria-valuetext", `threshold ${short(threshold)}, ${metric.title} ${shown(value)}, ${percent(flagged(state.at))} flagged`);
    byId("best").disabled = isBest;

    const now = atPrior(here, state.prior), then = atPrior(top, state.prior), sum = now.tp + now.fp + now.fn + now.tn;
    const per = rowsInWords((now.tp + now.fn) / sum);
    const of = (cell) => Math.round((cell / sum) * per); // parts are differences, so that they add up
    const positive = of(now.tp + now.fn), flags = of(now.tp + now.fp), hits = Math.min(of(now.tp), positive, flags);
    const sentences = [
      `Of ${group.format(per)} rows, <b>${group.format(positive)}</b> are positive. This cut flags <b>${group.format(flags)}</b>: ${group.format(hits)} rightly, ${plural(group.format(flags - hits), "is a false alarm", "are false alarms")}. It misses ${group.format(positive - hits)}.`,
    ];
    if (!isBest && Number.isFinite(value)) {
      const scale = per / sum, found = Math.round((now.tp - then.tp) * scale), alarms = Math.round((now.fp - then.fp) * scale);
      const more = (n, what) => (n === 0 ? `as many ${what}s` : `${group.format(Math.abs(n))} ${n > 0 ? "more" : "fewer"} ${what}${Math.abs(n) === 1 ? "" : "s"}`);
      sentences.push(`Beside the best cut it finds ${more(found, "positive")} and raises ${more(alarms, "false alarm")} in ${group.format(per)} rows.`);
      if (metric === costs) sentences.push(`That costs <b>${short(lost * per)}</b> in ${group.format(per)} rows.`);
    }
    const ratio = trade(metric, state.best.value, state.prior);
    if (Number.isFinite(ratio) && ratio > 0) {
      const chance = 1 / (1 + ratio);
      sentences.push(`${safe(metric.title)}, at its best, counts one missed positive like <b>${short(Number(ratio.toPrecision(3)))}</b> false alarm${ratio === 1 ? "" : "s"}: it pays to flag a row whose chance to be positive is ${percent(chance)} or more.`);
    }
    byId("words").innerHTML = sentences.map((s) => `<p>${s}</p>`).join("");
  };
  const tabulate = () => {
    const body = document.querySelector("#all tbody");
    body.replaceChildren(...metrics.map((metric) => {
      const top = best(metric, state.prior), row = document.createElement("tr");
      const head = document.createElement("th"), button = document.createElement("button");
      head.scope = "row";
      button.type = "button";
      button.textContent = metric.title;
      button.addEventListener("click", () => { choose(metric); byId("metric").focus({ preventScroll: true }); });
      head.append(button);
      row.append(head);
      row.dataset.metric = metric.name;
      if (metric === state.metric) row.setAttribute("aria-current", "true");
      const cells = [short(thresholds[top.at]), shown(top.value), shown(evaluate(metric, state.at, state.prior)), percent(precision(top.at)), percent(recall(top.at)), percent(flagged(top.at)), metric.formula];
      for (const text of cells) { const cell = document.createElement("td"); cell.textContent = text; row.append(cell); }
      return row;
    }));
  };
  const tabulateHere = () => {
    for (const row of document.querySelectorAll("#all tbody tr")) {
      const metric = metrics.find((m) => m.name === row.dataset.metric);
      row.children[3].textContent = shown(evaluate(metric, state.at, state.prior));
    }
  };

  // --- Acting.

  const move = (at) => { state.at = Math.min(Math.max(at, 0), size - 1); drawLive(); tell(); tabulateHere(); };
  const refresh = () => { state.best = best(state.metric, state.prior); draw(); tabulate(); };
  const choose = (metric) => {
    state.metric = metric;
    byId("metric").value = metric.name;
    byId("worth").hidden = metric !== costs;
    byId("prior").disabled = metric.fixed_prior;
    refresh();
    move(state.best.at);
  };
  byId("metric").append(...metrics.map((metric) => new Option(metric.title, metric.name)));
  byId("metric").addEventListener("change", (event) => choose(metrics.find((m) => m.name === event.target.value)));
  byId("slider").max = String(size - 1);
  byId("slider").addEventListener("input", (event) => move(size - 1 - Number(event.target.value)));
  byId("best").addEventListener("click", () => move(state.best.at));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("threshold").addEventListener("change", (event) => {
    const typed = parsed(event.target.value);
    if (!complain(event.target, Number.isNaN(typed) ? "The threshold must be a number." : "")) return;
    // the lowest cut that is not below what was typed accepts the same scores, up to the grid
    let at = size - 1;
    while (at > 0 && thresholds[at] < typed) at--;
    move(at);
  });
  byId("prior").addEventListener("input", (event) => {
    const empty = event.target.value.trim() === "", typed = parsed(event.target.value) / 100;
    if (!empty && !complain(event.target, typed > 0 && typed < 1 ? "" : "The share of positives must lie between 0 and 100 %.")) return;
    complain(event.target, "");
    state.prior = empty || Math.abs(typed - data.prior) < 1e-12 ? null : typed;
    refresh();
    move(state.best.at);
  });
  for (const cell of ORDER) {
    byId(`worth-${cell}`).value = String(worth[cell]);
    byId(`worth-${cell}`).addEventListener("input", (event) => {
      const typed = parsed(event.target.value);
      if (!complain(event.target, Number.isFinite(typed) ? "" : "The worth of a row must be a number.")) return;
      worth[cell] = typed;
      const wrong = worth.fp > worth.tn ? "A false positive must not be worth more than a true negative: costs are negative." :
        worth.fn > worth.tp ? "A false negative must not be worth more than a true positive: costs are negative." : "";
      if (!complain(event.target, wrong)) return;
      costs.numerator.constant = ORDER.map((name) => worth[name]);
      refresh();
      move(state.best.at);
    });
  }
  costs.numerator.constant = ORDER.map((name) => worth[name]);
  for (const axis of ["score", "share"]) {
    byId(`axis-${axis}`).addEventListener("click", () => {
      state.axis = axis;
      for (const other of ["score", "share"]) byId(`axis-${other}`).setAttribute("aria-pressed", String(other === axis));
      draw();
      drawLive();
    });
  }
  const open = () => {
    state.prior = start.prior;
    byId("prior").value = start.prior === null ? "" : String(Number((100 * start.prior).toPrecision(12)));
    byId("prior").placeholder = (100 * data.prior).toPrecision(4);
    byId("prior").disabled = data.positives === 0 || data.negatives === 0;
    complain(byId("prior"), "");
    choose(metrics.find((m) => m.name === start.metric));
    move(start.at);
  };
  byId("reset").addEventListener("click", open);
  let width = window.innerWidth;
  const redraw = () => { draw(); drawLive(); };
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; redraw(); } });
  window.addEventListener("beforeprint", redraw);
  open();
})();
