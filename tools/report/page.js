// The page, put together.

function reading(label, parts) {
  return make("div", { class: "reading" }, make("span", { class: "label", text: label }),
    make("span", { class: "value" }, parts[0], parts[1] ? make("span", { class: "unit", text: " " + parts[1] }) : null));
}

function startReadings() {
  const box = byId("readings");
  const sum = (side, key) => side.devices.reduce((all, device) => all + device[key], 0);

  if (data.profile) {
    const { ways, ratio, pays_after: pays } = data.profile;
    const steady = (name) => {
      const { median } = ways.find((way) => way.name === name).steady;
      return timeParts(median === null ? null : median * 1e9);
    };
    box.append(make("div", { class: "line" },
      reading("graph, a step", steady("graph")), reading("eager, a step", steady("eager")),
      reading("faster by", ratio.n ? [significant(1 / ratio.median, 3), "\u00d7"] : ["n/a", ""]),
      reading("pays back after", pays === null ? [ratio.n ? "never" : "n/a", ""] : [count(pays), "steps"]),
      ...data.sides.filter((side) => side.devices.length).map((side) =>
        reading(`idle while traced, ${side.short}`, [(sum(side, "idle") / sum(side, "span") * 100).toFixed(1), "%"]))));
    return;
  }
  for (const side of data.sides) {
    if (!side.devices.length) continue;
    box.append(make("div", { class: "line" },
      data.sides.length > 1 ? make("h2", { class: "whose", text: side.short }) : null,
      reading("span", timeParts(sum(side, "span"))),
      reading("busy", [(sum(side, "busy") / sum(side, "span") * 100).toFixed(1), "%"]),
      reading("idle", timeParts(sum(side, "idle"))),
      reading("launches", side.n_calls ? [count(side.kernel_launches + side.graph_launches),
        side.graph_launches ? (side.kernel_launches ? `${count(side.graph_launches)} of graphs` : "of graphs") : ""] : ["n/a", ""])));
  }
}

function startHead() {
  const said = data.verdict.map((sentence) => data.sides.reduce((words, side) => words.replace(`In ${side.title} `, `In ${side.short} `), sentence)
    .replace(/(\d) us\b/g, "$1\u202fµs").replace(/(\d) (ns|ms|s)\b/g, "$1\u202f$2"));

  byId("version").textContent = data.gexec;
  byId("title").textContent = data.title + (data.profile ? `, ${data.profile.precision}, on ${data.profile.place}` : "");
  document.title = data.title + " \u2013 gexec";
  byId("verdict").append(said[0] || "", ...said.slice(1).map((words) => make("span", { class: "rest", text: words })));
}

function startLegend() {
  const key = (name, words) => make("span", { class: "key" }, swatch(name), words);
  const box = byId("legend");

  for (const name of classNames)
    if (name !== "unknown" || data.sides.some((side) => side.devices.some((device) => device.gaps[3][0] > 0)))
      box.append(key(name, name + " gap"));
  if (data.profile) for (const name of Object.keys(PHASES).filter((one) => data.ops.some((op) => op.phase === one)))
    box.append(key(PHASES[name], name));
  else {
    box.append(key("forward", "kernel"));
    if (data.ops.some((op) => op.kind !== "kernel")) box.append(key("optimizer", "copy, fill"));
  }
}

function startNotes() {
  const notes = [];
  if (data.left_out) notes.push(`${count(data.left_out)} records that begin after ${time(data.cut_ns)} are not in this page; figures and tables count them.`);
  const hidden = data.sides.reduce((all, side) => all + side.rows_hidden, 0);
  if (hidden) notes.push(`${count(hidden)} rows are not drawn.`);
  if (notes.length) {
    byId("left-out").textContent = notes.join(" ");
    byId("left-out").hidden = false;
  }
}

function start() {
  startTheme();
  startHead();
  if (data.sides.length) {
    startCanvas();
    startLegend();
    startLargest();
    startNotes();
  } else byId("timeline").remove();
  startReadings();
  startGaps();
  startOps();
  if (data.profile) {
    startFacts(data.profile);
    startPasses(data.profile);
    startLedger(data.profile);
    startCharts();
  } else
    for (const id of ["patterns", "roofline", "steps", "ledger", "passes", "memory", "environment"]) byId(id).remove();
}

// What a test asks: where things stand, in pixels of the page.
window.gexec = {
  data,
  window: () => [view.from, view.to],
  home: () => view.home,
  plot: () => [view.left, view.right],
  selected: () => view.selected,
  show: (from, to) => { setWindow(from, to); paint(); },
  // [left, top, width, height, ns, class] of each gap of a device.
  gaps: (side, device) => {
    const row = view.rows.find((one) => one.kind === "band" && one.side === side && one.index === device);
    const gap = row.device.gap;
    return gap.start.map((start, i) => [xOf(start), row.y, xOf(start + gap.ns[i]) - xOf(start), row.height, gap.ns[i], classNames[gap.class[i]]]);
  },
  // [left, top, width, height, op] of each activity of a row.
  bars: (side, device, index) => {
    const rows = view.rows.filter((one) => one.kind === "stream" && one.side === side && one.device === data.sides[side].devices[device]);
    const { row, y, height } = rows[index];
    return row.start.map((start, i) => [xOf(start), y, xOf(start + row.ns[i]) - xOf(start), height, row.op[i]]);
  },
};

start();
