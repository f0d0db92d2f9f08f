// Roofline, step times, and when the graph has paid for itself.

function svgOf(width, height, label) {
  return draw("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
}

function logScale(low, high, from, to) {
  const a = Math.log10(low), b = Math.log10(high);
  return (value) => from + (Math.log10(value) - a) / (b - a) * (to - from);
}

// --- roofline ---

function roofPoints() {
  return data.ops.map((op, i) => ({ op: i, figures: figures(op), name: op.name || "not claimed", phase: op.phase }))
    .filter(({ figures: f }) => f && f.flops > 0 && f.bytes > 0 && f.flop_rate > 0);
}

function roofPanel(title, points, memoryRate, memoryWords, frame, width) {
  const { ceilings, precision } = data.profile;
  const height = 300, left = 58, right = width - 14, top = 12, bottom = height - 34;
  const svg = svgOf(width, height, `${title}: ${points.length} ops by intensity and rate`);
  const x = logScale(frame.x[0], frame.x[1], left, right), y = logScale(frame.y[0], frame.y[1], bottom, top);
  const labels = [];

  for (let d = Math.ceil(Math.log10(frame.x[0])); d <= Math.log10(frame.x[1]) + 1e-9; d++) {
    svg.append(draw("line", { class: "axis", x1: x(10 ** d), x2: x(10 ** d), y1: top, y2: bottom }),
      draw("text", { x: x(10 ** d), y: bottom + 15, "text-anchor": "middle" }, d < 0 ? (10 ** d).toFixed(-d) : count(10 ** d)));
  }
  for (let d = Math.ceil(Math.log10(frame.y[0])); d <= Math.log10(frame.y[1]) + 1e-9; d++)
    svg.append(draw("line", { class: "axis", x1: left, x2: right, y1: y(10 ** d), y2: y(10 ** d) }),
      draw("text", { x: left - 6, y: y(10 ** d) + 4, "text-anchor": "end" }, scaled(10 ** d, "")));
  svg.append(draw("text", { x: right, y: height - 4, "text-anchor": "end" }, "FLOP / byte"),
    draw("text", { x: 0, y: top - 2 }, "FLOP/s"));
  const rates = Object.entries(ceilings.flops).filter(([, rate]) => rate !== null);
  const best = ceilings.flops[precision] !== null && ceilings.flops[precision] !== undefined ? ceilings.flops[precision] : Math.max(...rates.map(([, rate]) => rate), 0);
  for (const [name, rate] of rates) {
    const own = rate === best, from = memoryRate ? Math.max(frame.x[0], rate / memoryRate) : frame.x[0];
    if (from >= frame.x[1]) continue;
    svg.append(draw("line", { class: own ? "roof" : "other", x1: x(from), x2: right, y1: y(rate), y2: y(rate) }),
      draw("text", { class: own ? "strong" : "", x: right, y: y(rate) - 5, "text-anchor": "end" }, `${name} ${scaled(rate, "FLOP/s")}`));
  }
  if (memoryRate) {
    const to = Math.min(frame.x[1], best / memoryRate), from = Math.max(frame.x[0], frame.y[0] / memoryRate);
    const angle = Math.atan2(y(to * memoryRate) - y(from * memoryRate), x(to) - x(from)) * 180 / Math.PI;
    const at = from * Math.pow(to / from, 0.42);
    svg.append(draw("line", { class: "roof", x1: x(from), y1: y(from * memoryRate), x2: x(to), y2: y(to * memoryRate) }),
      draw("text", { class: "strong", "text-anchor": "middle", transform: `translate(${x(at)} ${y(at * memoryRate) - 6}) rotate(${angle})` },
        `${memoryWords} ${scaled(memoryRate, "B/s")}`));
  }
  for (const point of [...points].sort((a, b) => b.figures.share - a.figures.share)) {
    const px = x(point.figures.flops / point.figures.bytes), py = y(point.figures.flop_rate);
    const dot = draw("circle", {
      class: "point", cx: px, cy: py, r: 3 + 5 * Math.sqrt(point.figures.share), "data-op": point.op,
      style: `stroke: var(--${point.phase ? PHASES[point.phase] : "forward"})`,
    });
    dot.append(draw("title", {}, `${point.name}: ${scaled(point.figures.flop_rate, "FLOP/s")} at ${significant(point.figures.flops / point.figures.bytes, 3)} FLOP a byte, ` +
      `${bytes(point.figures.bytes)}, ${percent(point.figures.of_floor)} of its floor`));
    dot.addEventListener("click", () => select(view.selected === point.op ? -1 : point.op, true));
    svg.append(dot);
    const room = { x0: px + 8, x1: px + 12 + point.name.length * 6.4, y0: py - 7, y1: py + 7 };
    if (room.x1 < right && !labels.some((other) => room.x0 < other.x1 && room.x1 > other.x0 && room.y0 < other.y1 && room.y1 > other.y0)) {
      labels.push(room);
      svg.append(draw("text", { x: room.x0 + 2, y: py + 4 }, point.name));
    }
  }
  return make("div", {}, make("h3", { text: title }), svg);
}

function drawRoofline() {
  const { ceilings, l2_bytes: l2 } = data.profile, box = byId("roof");
  const points = roofPoints(), without = data.ops.filter((op) => figures(op)).length - points.length;
  const known = ceilings && ceilings.copy.filter(([, rate]) => rate !== null);

  box.replaceChildren();
  if (!ceilings || !points.length) {
    byId("roof-note").textContent = ceilings ? "No op has FLOPs, bytes and a rate that are all known: there is nothing to draw."
      : "n/a: what this card can do at best has not been measured. Run gexec doctor --measure on it once, then profile again.";
    return;
  }
  const small = known.filter(([size]) => size <= l2).map(([, rate]) => rate);
  const beyond = known.filter(([size]) => size > l2).map(([, rate]) => rate);
  const fast = small.length ? Math.max(...small) : null, slow = beyond.length ? beyond[beyond.length - 1] : null;
  const rates = Object.values(ceilings.flops).filter((rate) => rate !== null);
  const xs = points.map(({ figures: f }) => f.flops / f.bytes), ys = points.map(({ figures: f }) => f.flop_rate);
  const ridge = slow && rates.length ? Math.max(...rates) / slow : 100;
  const decade = (value, up) => 10 ** (up ? Math.ceil(Math.log10(value)) : Math.floor(Math.log10(value)));
  const frame = {
    x: [decade(Math.min(...xs) * 0.8, false), decade(Math.max(...xs, ridge) * 1.5, true)],
    y: [decade(Math.min(...ys) * 0.8, false), decade(Math.max(...ys, ...rates) * 1.5, true)],
  };
  const inside = points.filter(({ figures: f }) => f.bytes <= l2), outside = points.filter(({ figures: f }) => f.bytes > l2);
  const columns = box.clientWidth >= 900 ? 2 : 1;
  const width = Math.floor((box.clientWidth - (columns - 1) * 40) / columns);
  const titles = [`Small working sets: up to the L2 cache, ${bytes(l2)}`, `Large working sets: beyond the L2 cache`];

  [[inside, fast, "L2"], [outside, slow, "memory"]].forEach(([some, rate, words], i) => {
    if (some.length) box.append(roofPanel(titles[i], some, rate, words, frame, width));
    else box.append(make("div", {}, make("h3", { text: titles[i] }), make("p", { class: "note", text: "No op is here." })));
  });
  byId("roof-note").textContent = `Ceilings as measured on ${ceilings.card}, ${ceilings.date}. The area of a point is its op's share of the step.` +
    (without ? ` ${count(without)} ops without FLOPs are in the table alone.` : "");
}

// --- step times ---

function drawSteps() {
  const ways = data.profile.ways.filter((way) => way.steady.n), box = byId("step-chart");
  const width = box.clientWidth, label = 96;
  const most = Math.max(...ways.map((way) => way.steady.median));

  box.replaceChildren();
  if (!ways.length) {
    byId("step-note").textContent = "n/a: no pair of blocks was timed.";
    return;
  }
  const row = 62, svg = svgOf(width, ways.length * row + 4, "Step times of the untraced blocks");
  ways.forEach((way, i) => {
    const y = i * row + 4, { median, p5, p95, raw } = way.steady;
    const low = Math.min(...raw), high = Math.max(...raw), from = label, to = width - 8;
    const spread = Math.max(high - low, median * 1e-4);
    const x = (value) => from + 6 + (value - low) / spread * (to - from - 12);

    svg.append(draw("text", { class: "strong", x: 0, y: y + 12 }, way.name),
      draw("rect", { x: from, y: y + 4, width: Math.max(1, (to - from - 64) * median / most), height: 9, fill: way.name === "graph" ? "var(--backward)" : "var(--optimizer)" }),
      draw("text", { class: "strong", x: from + (to - from - 64) * median / most + 6, y: y + 12 }, seconds(median)),
      draw("line", { class: "axis", x1: from, x2: to, y1: y + 34, y2: y + 34 }),
      draw("line", { x1: x(p5), x2: x(p95), y1: y + 34, y2: y + 34, stroke: "var(--soft)", "stroke-width": 3 }));
    // Blocks of one time stand above each other.
    const piles = new Map();
    for (const value of [...raw].sort((a, b) => a - b)) {
      const column = Math.round(x(value) / 6), n = piles.get(column) || 0;
      piles.set(column, n + 1);
      svg.append(draw("circle", { cx: x(value), cy: y + 30 - Math.min(n, 3) * 3.2, r: 2.2, fill: "var(--ink)", "fill-opacity": 0.5 }));
    }
    svg.append(draw("line", { x1: x(median), x2: x(median), y1: y + 26, y2: y + 40, stroke: "var(--ink)", "stroke-width": 1.5 }),
      draw("text", { x: from, y: y + 50 }, seconds(low)), draw("text", { x: to, y: y + 50, "text-anchor": "end" }, seconds(high)),
      draw("text", { x: 0, y: y + 50 }, `${way.steady.n} blocks`));
  });
  box.append(svg);
  const { ratio } = data.profile;
  byId("step-note").textContent = "Bars: the median, on one scale from 0. Dots: each block of " + count(data.profile.block) +
    " steps, between its least and its most; the heavy line goes from p5 to p95." +
    (ratio.n ? ` Pair by pair the graph takes ${significant(ratio.median, 3)} of eager (p5 ${significant(ratio.p5, 3)}, p95 ${significant(ratio.p95, 3)}, ${ratio.n} pairs).` : "");
}

// --- payback ---

function drawPayback() {
  const { ways, ledger, pays_after: pays } = data.profile, box = byId("payback");
  const steady = (name) => ways.find((way) => way.name === name).steady.median;
  const cost = ["capture", "instantiate", "upload"].reduce((sum, name) => sum + (ledger.find((row) => row.name === name).s || 0), 0);

  box.replaceChildren();
  if (pays === null || !cost) return;
  const steps = Math.max(2, pays * 2), eager = steady("eager"), graph = steady("graph");
  const width = box.clientWidth, height = 132, left = 4, right = width - 70, top = 14, bottom = height - 22;
  const most = Math.max(steps * eager, cost + steps * graph);
  const x = (n) => left + n / steps * (right - left), y = (s) => bottom - s / most * (bottom - top);
  const svg = svgOf(width, height, `The graph has paid for itself after ${pays} steps`);

  svg.append(draw("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }),
    draw("line", { class: "axis", x1: x(pays), x2: x(pays), y1: top, y2: bottom }),
    draw("line", { class: "other", x1: x(0), y1: y(0), x2: x(steps), y2: y(steps * eager) }),
    draw("line", { class: "roof", x1: x(0), y1: y(cost), x2: x(steps), y2: y(cost + steps * graph) }),
    draw("circle", { cx: x(pays), cy: y(pays * eager), r: 3.5, fill: "var(--ink)" }),
    draw("text", { class: "strong", x: right + 6, y: y(steps * eager) + 4 }, "eager"),
    draw("text", { class: "strong", x: right + 6, y: y(cost + steps * graph) + 4 }, "graph"),
    draw("text", { x: left, y: bottom + 15 }, "0"),
    draw("text", { x: x(pays), y: bottom + 15, "text-anchor": "middle" }, `${count(pays)} steps`),
    draw("text", { x: left + 6, y: y(cost) - 6 }, `${seconds(cost)} to build`));
  box.append(make("p", { class: "note", text: "Time since the first step, in all." }), svg);
}

function startCharts() {
  const all = () => {
    drawRoofline();
    drawSteps();
    drawPayback();
    document.querySelectorAll(".point").forEach((point) => point.classList.toggle("picked", Number(point.dataset.op) === view.selected));
  };
  let width = document.body.clientWidth;
  all();
  window.addEventListener("resize", () => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    all();
  });
}
