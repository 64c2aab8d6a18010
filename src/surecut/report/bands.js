(() => {
  const zones = data.zones, last = zones.length - 1;
  const chosen = data.chosen.threshold.map((t) => (typeof t === "string" ? infinities[t] : t));
  // Boundary b is between zone b and zone b + 1; its cut is `at[b]`, a position on the grid, where thresholds descend.
  const boundaries = [...Array(last).keys()];
  const start = { at: data.chosen.at, gains: data.gains, prior: data.given_prior };
  const state = { at: [], gains: [], prior: null, best: null };

  // --- The mathematics.

  const ends = (at) => [size - 1, ...at, 0];
  const inside = (high, low) => {
    const tp = data.grid.tp[low] - data.grid.tp[high], fp = data.grid.fp[low] - data.grid.fp[high];
    return { tp, fp, fn: data.positives - tp, tn: data.negatives - fp };
  };
  const contents = (at) => zones.map((_, z) => inside(ends(at)[z + 1], ends(at)[z]));
  const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);
  const total = (cells) => cells.tp + cells.fp + cells.fn + cells.tn;
  const share = (cells) => (cells.tp + cells.fp) / total(cells);
  const ppv = (cells) => rate(cells.tp, cells.tp + cells.fp);
  const npv = (cells) => rate(cells.fp, cells.tp + cells.fp);
  const gainOf = (at) => sum(contents(at).map((one, z) => {
    const cells = atPrior(one, state.prior);
    return (state.gains[z][0] * cells.fp + state.gains[z][1] * cells.tp) / total(cells);
  }));
  // What is above a threshold, and what is below it.
  const ppvAbove = (i) => ppv(atPrior(counts(i), state.prior));
  const npvBelow = (i) => { const cells = atPrior(counts(i), state.prior); return rate(cells.tn, cells.tn + cells.fn); };

  // An empty zone, where the quantity is 0/0, meets its conditions.
  const valueOf = (condition, cells) => formulas.cells(condition.quantity, atPrior(cells, state.prior));
  const isMet = (condition, cells) => {
    const value = valueOf(condition, cells);
    if (Number.isNaN(value)) return true;
    return condition.sense === ">=" ? value >= condition.level - data.tolerance : value <= condition.level + data.tolerance;
  };
  const outer = data.conditions.filter((one) => one.zone === 0 || one.zone === last);
  const inner = data.conditions.filter((one) => one.zone !== 0 && one.zone !== last);
  const none = [0, 0, 0, 0];
  const gainAt = (boundary) => {
    const [below, above] = [state.gains[boundary], state.gains[boundary + 1]];
    return {
      name: "gain", kind: "cells", fixed_prior: false,
      numerator: { constant: [above[1] - below[1], above[0] - below[0], 0, 0], positives: none, negatives: none },
      denominator: { constant: [1, 1, 1, 1], positives: none, negatives: none },
    };
  };

  // The best cut at each boundary; all boundaries together where cuts would cross, or a condition joins two of them.
  const bestZones = () => {
    const keep = byId("keep") !== null && byId("keep").checked;
    const allowed = (boundary) => {
      const bound = keep ? outer.filter((one) => (one.zone === 0 ? 0 : last - 1) === boundary) : [];
      return (i) => bound.every((one) => isMet(one, one.zone === 0 ? inside(i, size - 1) : inside(0, i)));
    };
    const found = boundaries.map((boundary) => best(gainAt(boundary), state.prior, allowed(boundary)));
    if (found.some((one) => one.at < 0)) return null;
    const at = found.map((one) => one.at);
    const isJoint = keep && inner.length > 0;
    const isOrdered = at.every((one, boundary) => boundary === 0 || one <= at[boundary - 1]);
    return isOrdered && !isJoint ? at : bestTogether(found.map((one) => one.values), isJoint ? inner : []);
  };
  const bestTogether = (values, conditions) => {
    const parts = values.map((part) => part.map((v) => (Number.isNaN(v) ? -Infinity : v)));
    const mayFollow = conditions.length === 0 ? null : follows(conditions);
    const reach = [parts[0]];
    for (let boundary = 1; boundary < last; boundary++) {
      const below = reach[boundary - 1], found = new Array(size);
      let largest = -Infinity;
      for (let i = size - 1; i >= 0; i--) {
        if (mayFollow === null || !mayFollow[boundary]) largest = Math.max(largest, below[i]);
        else {
          largest = -Infinity;
          for (let j = i; j < size; j++) if (below[j] > largest && mayFollow[boundary](i, j)) largest = below[j];
        }
        found[i] = parts[boundary][i] + largest;
      }
      reach.push(found);
    }
    const top = Math.max(...reach[last - 1]);
    if (top === -Infinity) return null;
    const whole = atPrior(counts(0), state.prior), all = total(whole);
    const base = (state.gains[0][0] * whole.tn + state.gains[0][1] * whole.fn) / all;
    const rounding = data.rounding * zones.length * Math.max(...state.gains.flat().map(Math.abs));
    const wanted = top + base - data.tie * Math.abs(top + base) - rounding - base;
    const at = new Array(last);
    let edge = reach[last - 1].findIndex((v) => v >= wanted), gained = parts[last - 1][edge];
    at[last - 1] = edge;
    for (let boundary = last - 2; boundary >= 0; boundary--) {
      const above = edge, follow = mayFollow && mayFollow[boundary + 1];
      let first = -1, most = -1;
      for (let i = above; i < size && first < 0; i++) {
        const v = reach[boundary][i];
        if (v === -Infinity || (follow && !follow(above, i))) continue;
        if (v + gained >= wanted) first = i;
        if (most < 0 || v > reach[boundary][most]) most = i;
      }
      edge = first >= 0 ? first : most;
      at[boundary] = edge;
      gained += parts[boundary][edge];
    }
    return at;
  };
  // Whether a cut may be the lower end of an inner zone, by the zone; all pairs are tried, so cells are numbers here.
  const follows = (conditions) => zones.map((_, zone) => {
    const bound = conditions.filter((one) => one.zone === zone);
    if (bound.length === 0) return null;
    const whole = atPrior(counts(0), state.prior), positives = whole.fn, negatives = whole.tn;
    const positive = positives / data.positives, negative = negatives / data.negatives;
    const terms = bound.map((one) => [one.quantity.numerator.constant, one.quantity.denominator.constant, one]);
    return (high, low) => {
      const tp = (data.grid.tp[low] - data.grid.tp[high]) * positive, fp = (data.grid.fp[low] - data.grid.fp[high]) * negative;
      return terms.every(([n, d, one]) => {
        const bottom = d[0] * tp + d[1] * fp + d[2] * (positives - tp) + d[3] * (negatives - fp);
        if (bottom === 0) return true;
        const value = (n[0] * tp + n[1] * fp + n[2] * (positives - tp) + n[3] * (negatives - fp)) / bottom;
        return one.sense === ">=" ? value >= one.level - data.tolerance : value <= one.level + data.tolerance;
      });
    };
  });

  // The threshold of each boundary: where nobody has moved it, the tuned one, which may differ from the grid's.
  const thresholdsAt = (at) => {
    const found = at.map((i, boundary) => (i === start.at[boundary] ? chosen[boundary] : thresholds[i]));
    for (let boundary = last - 2; boundary >= 0; boundary--) found[boundary] = Math.min(found[boundary], found[boundary + 1]);
    return found;
  };

  // --- Words.

  // Near 0 and near 1 two decimals: there it matters.
  const fine = (x, round = Math.round) => {
    if (Number.isNaN(x)) return "–";
    if (x === 0 || x === 1) return 100 * x + "\u00a0%";
    const decimals = x < 0.1 || x > 0.9 ? 2 : 1, scale = 10 ** (decimals + 2);
    return (round(Number((x * scale).toPrecision(12))) / scale * 100).toFixed(decimals) + "\u00a0%";
  };
  const bold = (text) => `<b>${safe(text)}</b>`;
  const thresholdText = (t) => (t === Infinity ? "nothing above" : t === -Infinity ? "nothing below" : String(t));
  const ruleText = (found) => {
    const starts = [-Infinity, ...found];
    return zones.flatMap((zone, z) => {
      const from = starts[z], to = z < last ? starts[z + 1] : Infinity;
      if (!(from < to)) return [];
      return [`${zone} ${from > -Infinity ? `from ${from}` : to < Infinity ? `below ${to}` : "always"}`];
    }).join(", ");
  };

  // --- Drawing.

  const reachOfAxis = 1e-3 * (data.axis[1] - data.axis[0]);
  const onAxis = (t) => Math.min(Math.max(t, data.axis[0] - reachOfAxis), data.axis[1] + reachOfAxis);
  const abscissa = (i) => onAxis(thresholds[i]);
  const all = [...Array(size).keys()];
  const histogram = new Chart("histogram", { height: 300 });
  const curve = new Chart("curve", { height: 210 });
  const className = (zone) => (zone === 0 ? "lowest" : zone === last ? "highest" : zone % 2 ? "inner" : "inner even");
  let drag = null;
  const pick = (chart) => (x, y, isStart) => {
    const at = x <= chart.margin.left ? size - 1 : x >= chart.width - chart.margin.right ? 0 : nearest((i) => Math.abs(chart.px(abscissa(i)) - x));
    if (isStart) {
      const places = thresholdsAt(state.at).map((t) => chart.px(onAxis(t)));
      const distances = places.map((place) => Math.abs(place - x)), least = Math.min(...distances);
      const nearby = boundaries.filter((boundary) => distances[boundary] <= least + 1e-9);
      // of thresholds at the same place, the one that can move there without taking another along
      drag = { boundary: x < places[nearby[0]] ? nearby[0] : nearby[nearby.length - 1], from: state.at };
    }
    move(drag.boundary, at, drag.from);
  };
  histogram.onPick = pick(histogram);
  curve.onPick = pick(curve);

  const levels = data.conditions.filter((one) => one.sense === ">=" && one.quantity.name === (one.zone === last ? "ppv" : one.zone === 0 ? "npv" : ""));
  const draw = () => {
    const [up, down] = classShares(), top = Math.max(...up, ...down), edges = data.histogram.edges;
    histogram.begin(data.axis, [-top, top], { x: "score; bars are shares of their own class", percentY: true, top: 48 }, "Histogram of the scores, positives upward, negatives downward, and the zones that the thresholds divide them into.");
    histogram.back = element("g", {});
    histogram.svg.insertBefore(histogram.back, histogram.layer);
    drawSpread();
    bars(histogram, edges.slice(0, -1).map((e, k) => [e, edges[k + 1]]), up, down);

    const values = [...all.map(ppvAbove), ...all.map(npvBelow)].filter((v) => Number.isFinite(v));
    const low = Math.max(0, Math.floor(Math.min(...values, 1) * 10 - 0.5) / 10);
    const areKnown = data.limits.precision !== undefined && state.prior === start.prior;
    curve.begin(data.axis, [low, 1], { x: "threshold on the score", percentY: true, top: 14 }, "The share of positives above each threshold, and the share of negatives below it.");
    if (areKnown) {
      curve.area(all, abscissa, data.limits.precision, "band ppv");
      curve.area(all, abscissa, data.limits.npv, "band npv");
    }
    byId("limits-note").hidden = !areKnown;
    for (const one of levels) {
      const y = curve.py(one.level);
      element("line", { class: `level ${one.zone === 0 ? "npv" : "ppv"}`, x1: curve.margin.left, x2: curve.width - curve.margin.right, y1: y, y2: y }, curve.layer);
    }
    curve.path(all.map((i) => [abscissa(i), ppvAbove(i)]), { class: "line ppv" }, true);
    curve.path(all.map((i) => [abscissa(i), npvBelow(i)]), { class: "line npv" }, true);
  };
  // Where resamples put stable thresholds: known for the prior that they were tuned for.
  const drawSpread = () => {
    if (!byId("spread-note")) return;
    const isKnown = state.prior === start.prior;
    byId("spread-note").hidden = !isKnown;
    if (!isKnown) return;
    const height = histogram.height - histogram.margin.bottom - histogram.margin.top;
    for (const quantiles of data.chosen.spread.filter((one) => one.length)) {
      const [lowest, lower, , upper, highest] = quantiles.map((t) => histogram.px(onAxis(typeof t === "string" ? infinities[t] : t)));
      for (const [name, a, b] of [["spread", lowest, highest], ["spread half", lower, upper]]) {
        element("rect", { class: name, x: a, width: Math.max(1, b - a), y: histogram.margin.top, height }, histogram.layer);
      }
    }
  };
  const drawLive = () => {
    const found = thresholdsAt(state.at), cells = contents(state.at).map((one) => atPrior(one, state.prior));
    histogram.back.replaceChildren();
    histogram.live.replaceChildren();
    curve.live.replaceChildren();
    const places = [histogram.margin.left, ...found.map((t) => Math.min(Math.max(histogram.px(onAxis(t)), histogram.margin.left), histogram.width - histogram.margin.right)), histogram.width - histogram.margin.right];
    const top = histogram.margin.top, bottom = histogram.height - histogram.margin.bottom;
    zones.forEach((_, z) => {
      if (places[z] < places[z + 1]) element("rect", { class: `zone ${className(z)}`, x: places[z], width: places[z + 1] - places[z], y: top, height: bottom - top }, histogram.back);
    });
    const taken = []; // names of wide zones first: one that has no place is left out
    for (const z of zones.map((_, z) => z).sort((a, b) => places[b + 1] - places[b] - (places[a + 1] - places[a]))) {
      if (!(places[z] < places[z + 1])) continue;
      const name = zones[z].length > 24 ? zones[z].slice(0, 23) + "…" : zones[z], half = Math.max(4 * name.length, 24) + 2;
      const x = Math.min(Math.max((places[z] + places[z + 1]) / 2, half), histogram.width - half);
      if (taken.some(([from, to]) => x - half < to && from < x + half)) continue;
      taken.push([x - half, x + half]);
      element("text", { class: "label name", x, y: 16, "text-anchor": "middle" }, histogram.live, name);
      element("text", { x, y: 32, "text-anchor": "middle" }, histogram.live, fine(share(cells[z])));
    }
    found.forEach((t, boundary) => {
      for (const chart of [histogram, curve]) {
        const x = chart.px(onAxis(t));
        element("line", { class: "cut", x1: x, x2: x, y1: chart.margin.top, y2: chart.height - chart.margin.bottom, "data-boundary": boundary + 1 }, chart.live);
        element("path", { class: "handle", d: `M${x - 7} ${chart.margin.top - 8}h14l-7 11z` }, chart.live);
      }
    });
    curve.dot(onAxis(found[0]), npvBelow(state.at[0]), "here npv", 5.5);
    curve.dot(onAxis(found[last - 1]), ppvAbove(state.at[last - 1]), "here ppv", 5.5);
  };

  // --- Telling.

  const cell = (text, exact) => {
    const made = document.createElement("td");
    made.textContent = text;
    if (exact !== undefined) made.dataset.exact = String(exact);
    return made;
  };
  const limitText = (zone) => {
    const name = zone === 0 ? "npv" : zone === last ? "precision" : "";
    const limits = state.prior === start.prior ? data.limits[name] : undefined;
    if (limits === undefined) return "";
    const i = state.at[zone === 0 ? 0 : last - 1];
    return `${zone === 0 ? "NPV" : "PPV"} ${fine(limits.lower[i], Math.floor)} to ${fine(limits.upper[i], Math.ceil)}`;
  };
  const tabulate = (raw, cells) => {
    document.querySelector(".zones tbody").replaceChildren(...zones.map((zone, z) => {
      const row = document.createElement("tr"), head = document.createElement("th"), swatch = document.createElement("span");
      const rows = raw[z].tp + raw[z].fp;
      head.scope = "row";
      swatch.className = `swatch ${className(z)}`;
      head.append(swatch, zone);
      row.append(head, cell(fine(share(cells[z])), share(cells[z])), cell(group.format(rows), rows), cell(group.format(raw[z].fp), raw[z].fp), cell(group.format(raw[z].tp), raw[z].tp));
      row.append(cell(fine(npv(cells[z])), npv(cells[z])), cell(fine(ppv(cells[z])), ppv(cells[z])));
      if (data.limits.npv) row.append(cell(rows > 0 ? limitText(z) : "–"));
      return row;
    }).reverse());
  };
  const tell = () => {
    const raw = contents(state.at), cells = raw.map((one) => atPrior(one, state.prior)), found = thresholdsAt(state.at);
    const between = zones.length > 2 ? sum(cells.slice(1, -1).map(share)) : share(cells[1]);
    byId("headline-title").textContent = zones.length === 3 ? `in ${zones[1]}` : zones.length === 2 ? `in ${zones[1]}` : `between ${zones[0]} and ${zones[last]}`;
    byId("headline").textContent = fine(between);
    byId("headline").dataset.exact = String(between);

    const whole = total(cells[0]), per = rowsInWords((cells[0].tp + cells[0].fn) / whole);
    let before = 0, passed = 0;
    const parts = zones.map((zone, z) => { // rows of zones are differences, so that they add up
      passed += share(cells[z]);
      const rows = Math.round(passed * per) - before, what = z === 0 ? "positive" : "negative";
      before += rows;
      const wrong = Math.min(rows, Math.round(((z === 0 ? cells[z].tp : cells[z].fp) / whole) * per));
      return `<b>${group.format(rows)}</b> ${rows === 1 ? "is" : "are"} in ${bold(zone)}` + (z === 0 || z === last ? ` (${group.format(wrong)} of them ${what})` : "");
    });
    byId("words").innerHTML = `<p>Of ${group.format(per)} rows ${parts.slice(0, -1).join(", ")} and ${parts[last]}.</p>`;

    byId("conditions").replaceChildren(...data.conditions.map((one) => {
      const item = document.createElement("li"), met = isMet(one, raw[one.zone]), value = valueOf(one, raw[one.zone]);
      item.className = met ? "met" : "broken";
      item.textContent = `${one.text} in ${zones[one.zone]}: ${Number.isNaN(value) ? "met, the zone is empty" : `${met ? "met" : "broken"}, ${fine(value)}`}`;
      return item;
    }));
    if (data.metric) {
      const [low, high] = [cells[0], cells[last]], zone = { tp: high.tp, fp: high.fp, fn: low.tp, tn: low.fp };
      const bottom = dot(data.metric.denominator.constant, zone);
      const value = bottom === 0 ? NaN : (dot(data.metric.numerator.constant, zone) + (data.has_gains ? sum(cells.map((one, z) => start.gains[z][0] * one.fp + start.gains[z][1] * one.tp)) : 0)) / bottom;
      byId("ratio").hidden = false;
      byId("ratio").textContent = `${data.metric.title} of decided rows${data.has_gains ? " with the gains they were tuned with" : ""}: ${shown(value)}`;
      byId("ratio").dataset.exact = String(value);
    }
    byId("rule").textContent = ruleText(found);
    boundaries.forEach((boundary) => {
      const slider = byId(`slider-${boundary + 1}`), zone = zones[boundary + 1];
      byId(`threshold-${boundary + 1}`).value = thresholdText(found[boundary]);
      slider.value = String(size - 1 - state.at[boundary]);
      slider.setAttribute("aria-valuetext", `${zone} from ${short(found[boundary])}, ${fine(share(cells[boundary + 1]))} of rows in ${zone}`);
    });
    tabulate(raw, cells);
    tellGain();
  };
  const tellGain = () => {
    const here = gainOf(state.at), versus = byId("versus");
    byId("gain").textContent = shown(here);
    byId("gain").dataset.exact = String(here);
    const isBest = state.best !== null && state.best.every((i, boundary) => i === state.at[boundary]);
    versus.classList.toggle("at-best", isBest);
    byId("best").disabled = isBest || state.best === null;
    if (state.best === null) { versus.textContent = "No thresholds meet all conditions."; return; }
    const top = gainOf(state.best), lost = top - here;
    byId("gain").dataset.best = String(top);
    byId("gain").dataset.bestAt = state.best.join(" ");
    versus.textContent = isBest ? "These are the best thresholds." :
      `The best gain ${shown(top)}, with ${ruleText(thresholdsAt(state.best).map((t) => (Number.isFinite(t) ? Number(t.toPrecision(4)) : t)))}: ` +
      (lost < -5e-5 * Math.abs(top) ? "these gain more, and break a condition." : lost < 5e-5 * Math.abs(top) ? "these are as good." : `these lose ${shown(lost)}.`);
  };

  // --- Acting.

  // A threshold takes along those that it passes; a drag remembers where they were.
  const move = (boundary, at, from = state.at) => {
    state.at = from.map((i, other) => (other < boundary ? Math.max(i, at) : other > boundary ? Math.min(i, at) : at));
    show();
  };
  const show = () => { drawLive(); tell(); };
  const refresh = () => { state.best = bestZones(); };

  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("best").addEventListener("click", () => { state.at = state.best; show(); });
  boundaries.forEach((boundary) => {
    const slider = byId(`slider-${boundary + 1}`);
    slider.max = String(size - 1);
    slider.addEventListener("input", (event) => move(boundary, size - 1 - Number(event.target.value)));
    byId(`threshold-${boundary + 1}`).addEventListener("change", (event) => {
      const typed = parsed(event.target.value);
      if (!complain(event.target, Number.isNaN(typed) ? "The threshold must be a number." : "")) return;
      move(boundary, nearest((i) => Math.abs(Math.min(Math.max(thresholds[i], -Number.MAX_VALUE), Number.MAX_VALUE) - typed)));
    });
  });
  byId("prior").addEventListener("input", (event) => {
    const empty = event.target.value.trim() === "", typed = parsed(event.target.value) / 100;
    if (!empty && !complain(event.target, typed > 0 && typed < 1 ? "" : "The share of positives must lie between 0 and 100 %.")) return;
    complain(event.target, "");
    state.prior = empty || Math.abs(typed - data.prior) < 1e-12 ? null : typed;
    refresh();
    draw();
    show();
  });
  if (byId("keep")) byId("keep").addEventListener("change", () => { refresh(); tell(); });
  const gainInput = (zone, column) => byId(`gain-${zone}-${["negative", "positive"][column]}`);
  const complainOfGains = (input, message) => {
    input.setAttribute("aria-invalid", message ? "true" : "false");
    byId("gains-message").textContent = message;
    return !message;
  };
  const readGains = () => {
    const read = zones.map((_, zone) => [0, 1].map((column) => parsed(gainInput(zone, column).value)));
    let isNumber = true;
    zones.forEach((_, zone) => [0, 1].forEach((column) => {
      if (!complainOfGains(gainInput(zone, column), Number.isFinite(read[zone][column]) ? "" : "A gain must be a number.")) isNumber = false;
    }));
    if (!isNumber) { byId("gains-message").textContent = "A gain must be a number."; return; }
    const wrong = boundaries.find((b) => read[b + 1][0] > read[b][0] && read[b + 1][1] < read[b][1]);
    byId("gains-message").textContent = wrong === undefined ? "" :
      `${zones[wrong + 1]} gains more than ${zones[wrong]} on negatives and less on positives, and has the higher scores: turn the gains round.`;
    if (wrong !== undefined) return;
    state.gains = read;
    refresh();
    tell();
  };
  zones.forEach((_, zone) => [0, 1].forEach((column) => gainInput(zone, column).addEventListener("input", readGains)));

  const open = () => {
    state.prior = start.prior;
    state.at = start.at;
    state.gains = start.gains;
    byId("prior").value = start.prior === null ? "" : String(Number((100 * start.prior).toPrecision(12)));
    byId("prior").placeholder = (100 * data.prior).toPrecision(4);
    byId("prior").disabled = data.positives === 0 || data.negatives === 0;
    complain(byId("prior"), "");
    zones.forEach((_, zone) => [0, 1].forEach((column) => {
      gainInput(zone, column).value = String(start.gains[zone][column]);
      complainOfGains(gainInput(zone, column), "");
    }));
    if (byId("keep")) byId("keep").checked = true;
    byId("legend-levels").hidden = levels.length === 0;
    refresh();
    draw();
    show();
  };
  byId("reset").addEventListener("click", open);
  let width = window.innerWidth;
  const redraw = () => { draw(); drawLive(); };
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; redraw(); } });
  window.addEventListener("beforeprint", redraw);
  open();
})();
