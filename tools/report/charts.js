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

function roofAxes(svg, frame, x, y, box) {
  for (let d = Math.ceil(Math.log10(frame.x[0])); d <= Math.log10(frame.x[1]) + 1e-9; d++)
    svg.append(draw("line", { class: "axis", x1: x(10 ** d), x2: x(10 ** d), y1: box.top, y2: box.bottom }),
      draw("text", { x: x(10 ** d), y: box.bottom + 15, "text-anchor": "middle" }, d < 0 ? (10 ** d).toFixed(-d) : count(10 ** d)));
  for (let d = Math.ceil(Math.log10(frame.y[0])); d <= Math.log10(frame.y[1]) + 1e-9; d++)
    svg.append(draw("line", { class: "axis", x1: box.left, x2: box.right, y1: y(10 ** d), y2: y(10 ** d) }),
      draw("text", { x: box.left - 6, y: y(10 ** d) + 4, "text-anchor": "end" }, scaled(10 ** d, "").replace(/\.0+(?=\D|$)/, "")));
  svg.append(draw("text", { x: box.right, y: box.bottom + 30, "text-anchor": "end" }, "FLOP a byte"),
    draw("text", { x: 0, y: 10 }, "FLOP a second"));
}

// The roof of this precision, and of f32 where that is another one.
function roofLines(svg, memoryRate, memoryWords, frame, x, y, box) {
  const { ceilings, precision } = data.profile;
  const rates = ["f32", precision].filter((name, i, all) => all.indexOf(name) === i && ceilings.flops[name]);
  const best = Math.max(...rates.map((name) => ceilings.flops[name]));

  for (const name of rates) {
    const rate = ceilings.flops[name], from = memoryRate ? Math.max(frame.x[0], rate / memoryRate) : frame.x[0];
    if (from >= frame.x[1]) continue;
    svg.append(draw("line", { class: rate === best ? "roof" : "other", x1: x(from), x2: box.right, y1: y(rate), y2: y(rate) }),
      draw("text", { class: rate === best ? "strong" : "", x: box.right, y: y(rate) - 6, "text-anchor": "end" }, `${name} ${scaled(rate, "FLOP/s")}`));
  }
  if (!memoryRate) return;
  const to = rates.length ? Math.min(frame.x[1], best / memoryRate) : frame.x[1], from = Math.max(frame.x[0], frame.y[0] / memoryRate);
  const angle = Math.atan2(y(to * memoryRate) - y(from * memoryRate), x(to) - x(from)) * 180 / Math.PI;
  const at = from * Math.pow(to / from, 0.42);
  svg.append(draw("line", { class: "roof", x1: x(from), y1: y(from * memoryRate), x2: x(to), y2: y(to * memoryRate) }),
    draw("text", { class: "strong", "text-anchor": "middle", transform: `translate(${x(at)} ${y(at * memoryRate)}) rotate(${angle}) translate(0 -7)` },
      `${memoryWords} ${scaled(memoryRate, "B/s")}`));
}

function roofPanel(title, points, memoryRate, memoryWords, frame, width) {
  const height = 330, box = { left: 52, right: width - 14, top: 18, bottom: height - 34 };
  const svg = svgOf(width, height, `${title}: ${points.length} ops by intensity and rate`);
  const x = logScale(frame.x[0], frame.x[1], box.left, box.right), y = logScale(frame.y[0], frame.y[1], box.bottom, box.top);
  const placed = [...points].sort((a, b) => b.figures.share - a.figures.share).map((point) => ({
    ...point, x: x(point.figures.flops / point.figures.bytes), y: y(point.figures.flop_rate), r: 3 + 5 * Math.sqrt(point.figures.share),
  }));
  const taken = placed.map((point) => ({ x0: point.x - point.r, x1: point.x + point.r, y0: point.y - point.r, y1: point.y + point.r }));

  for (let px = box.left; memoryRate && px < box.right; px += 10) {
    const share = (px - box.left) / (box.right - box.left);
    const py = y(frame.x[0] * Math.pow(frame.x[1] / frame.x[0], share) * memoryRate);
    taken.push({ x0: px - 5, x1: px + 5, y0: py - 18, y1: py + 5 });
  }
  roofAxes(svg, frame, x, y, box);
  roofLines(svg, memoryRate, memoryWords, frame, x, y, box);
  placed.forEach((point, k) => {
    const dot = draw("circle", {
      class: "point", cx: point.x, cy: point.y, r: point.r, "data-op": point.op,
      style: `stroke: var(--${point.phase ? PHASES[point.phase] : "forward"})`,
    });
    dot.append(draw("title", {}, `${point.name}: ${scaled(point.figures.flop_rate, "FLOP/s")} at ${significant(point.figures.flops / point.figures.bytes, 3)} FLOP a byte, ` +
      `${bytes(point.figures.bytes)}, ${percent(point.figures.of_floor)} of its floor`));
    dot.addEventListener("click", () => select(view.selected === point.op ? -1 : point.op, true));
    svg.append(dot);
    // A name stands where nothing else does, or not at all.
    const length = point.name.length * 6.3, gap = point.r + 4;
    for (const [x0, anchor] of [[point.x + gap, "start"], [point.x - gap - length, "end"]]) {
      const room = { x0, x1: x0 + length, y0: point.y - 7, y1: point.y + 7 };
      if (room.x0 < box.left || room.x1 > box.right) continue;
      if (taken.some((other, i) => i !== k && room.x0 < other.x1 && room.x1 > other.x0 && room.y0 < other.y1 && room.y1 > other.y0)) continue;
      taken.push(room);
      svg.append(draw("text", { x: anchor === "start" ? point.x + gap : point.x - gap, y: point.y + 4, "text-anchor": anchor }, point.name));
      break;
    }
  });
  return make("div", {}, make("h3", { text: title }), svg);
}

function drawRoofline() {
  const { ceilings, l2_bytes: l2, precision } = data.profile, box = byId("roof");
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
  const best = Math.max(...["f32", precision].map((name) => ceilings.flops[name] || 0)) || null;
  const xs = points.map(({ figures: f }) => f.flops / f.bytes), ys = points.map(({ figures: f }) => f.flop_rate);
  const ridge = best && (slow || fast) ? best / (slow || fast) : 1;
  const frame = {
    x: [Math.min(...xs) * 0.5, Math.max(Math.max(...xs) * 3, ridge * 4)],
    y: [Math.min(...ys) * 0.4, Math.max(Math.max(...ys) * 2, (best || 0) * 2.2)],
  };
  const panels = [
    ["Small working sets: up to the L2 cache, " + bytes(l2), points.filter(({ figures: f }) => f.bytes <= l2), fast, "L2"],
    ["Large working sets: beyond the L2 cache, " + bytes(l2), points.filter(({ figures: f }) => f.bytes > l2), slow, "memory"],
  ].filter(([, some]) => some.length);
  const columns = box.clientWidth >= 900 ? panels.length : 1;
  const width = Math.min(860, Math.floor((box.clientWidth - (columns - 1) * 40) / columns));

  box.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
  for (const [title, some, rate, words] of panels) box.append(roofPanel(title, some, rate, words, frame, width));
  byId("roof-note").textContent = `Ceilings as measured on ${ceilings.card}, ${ceilings.date}. The area of a point is its op's share of the step.` +
    (panels.length === 1 ? ` No working set is ${panels[0][3] === "L2" ? "larger than" : "as small as"} the L2 cache.` : "") +
    (without ? ` ${count(without)} ${without === 1 ? "op" : "ops"} without FLOPs: in the table alone.` : "");
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
    draw("text", { x: left + 6, y: y(cost) - 11 }, `${seconds(cost)} to build`));
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
