// The timeline on its canvas, and what mouse, fingers and keys do there.

let canvas, context, ratio = 1, palette, patterns, asked = false;

function toneOf(op) {
  const one = op >= 0 ? data.ops[op] : null;
  return one && one.phase ? PHASES[one.phase] : one && one.kind && one.kind !== "kernel" ? "optimizer" : "forward";
}

function text(words, x, y, colour, options = {}) {
  context.font = `${options.weight || 400} ${options.size || 11.5}px ${getComputedStyle(document.body).fontFamily}`;
  context.fillStyle = colour;
  context.textAlign = options.align || "left";
  context.textBaseline = "middle";
  context.fillText(words, x, y);
}

// "12.9 µs" at a tick, with the decimals that tell neighbours apart.
function tickLabel(t, step) {
  const most = Math.max(Math.abs(view.from), Math.abs(view.to));
  const [size, unit] = most >= 2e9 ? [1e9, "s"] : most >= 2e6 ? [1e6, "ms"] : most >= 2e3 ? [1e3, "µs"] : [1, "ns"];
  const places = Math.max(0, -Math.floor(Math.log10(step / size) + 1e-9));
  return (t / size).toFixed(places).replace(/^-(0(\.0*)?)$/, "$1") + "\u202f" + unit;
}

function tickStep(room) {
  const least = (view.to - view.from) / Math.max(1, (view.right - view.left) / room);
  const power = 10 ** Math.floor(Math.log10(least));
  for (const times of [1, 2, 5, 10]) if (power * times >= least) return Math.max(1, power * times);
  return power * 10;
}

function drawScale(bottom) {
  const step = tickStep(view.width < 560 ? 74 : 96);

  context.lineWidth = 1;
  for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
    const x = Math.round(xOf(k * step)) + 0.5;
    context.strokeStyle = palette.faint;
    context.beginPath();
    context.moveTo(x, layout.top - 6);
    context.lineTo(x, bottom);
    context.stroke();
    if (x < view.right - 24 && x > view.left + 8) text(tickLabel(k * step, step), x, 9, palette.soft, { align: "center" });
  }
}

// What is too narrow for a bar of its own goes into columns of one pixel, as dark as the
// share of the pixel that it takes.
function drawColumn(column, visit) {
  const width = view.right - view.left, perPixel = width / (view.to - view.from);
  const shares = new Map();
  let i = Math.max(0, firstAfter(column.start, view.from) - 1);

  while (i > 0 && column.start[i - 1] + column.ns[i - 1] > view.from) i--;
  for (; i < column.start.length && column.start[i] < view.to; i++) {
    const start = Math.max(column.start[i], view.from), end = Math.min(column.start[i] + column.ns[i], view.to);
    if (end < start) continue;
    const size = (end - start) * perPixel;
    if (size >= 1.5) {
      visit(i, xOf(start), size, 1);
      continue;
    }
    const tone = visit(i, 0, 0, 0);
    let at = shares.get(tone);
    if (!at) shares.set(tone, at = new Float32Array(Math.ceil(width) + 2));
    const x = (start - view.from) * perPixel, pixel = Math.floor(x);
    const inside = Math.min(size, pixel + 1 - x);
    at[pixel] += inside;
    at[pixel + 1] += size - inside;
  }
  return shares;
}

function drawShares(shares, y, height, fills = palette) {
  for (const [tone, at] of shares) {
    context.fillStyle = fills[tone];
    for (let x = 0; x < at.length; x++)
      if (at[x] > 0) {
        context.globalAlpha = Math.min(1, Math.max(at[x], 0.12));
        context.fillRect(view.left + x, y, 1, height);
      }
  }
  context.globalAlpha = 1;
}

function drawBand(row) {
  const gap = row.device.gap;
  const shares = drawColumn(gap, (i, x, size) => {
    const name = classNames[gap.class[i]];
    if (size === 0) return name;
    context.globalAlpha = gap.between_steps[i] ? 0.5 : 1;
    context.fillStyle = patterns[name];
    context.fillRect(x, row.y, size, row.height);
    context.globalAlpha = 1;
    if (size > 3) {
      context.fillStyle = palette[name];
      context.fillRect(x, row.y + row.height - 2, size, 2);
      if (gap.between_steps[i] && size > 80) {
        const middle = row.y + row.height / 2;

        context.fillStyle = palette.sheet;
        context.fillRect(x + size / 2 - 36, middle - 8, 72, 16);
        text("between steps", x + size / 2, middle, palette.soft, { align: "center", size: 10.5 });
      }
    }
    return name;
  });
  drawShares(shares, row.y, row.height, patterns);
}

function drawStream(row) {
  const column = row.row, dim = view.selected >= 0;
  const shares = drawColumn(column, (i, x, size) => {
    const picked = dim && column.op[i] === view.selected;
    const tone = picked ? "mark" : toneOf(column.op[i]);
    if (size === 0) return tone;
    context.globalAlpha = dim && !picked ? 0.45 : 1;
    context.fillStyle = palette[tone];
    context.fillRect(x, row.y, Math.max(size - (size > 4 ? 1 : 0), 1), row.height);
    context.globalAlpha = 1;
    if (size > 34) {
      const name = data.profile && column.op[i] >= 0 ? opName(column.op[i]) : barName(data.sides[row.side].names[column.name[i]]);
      const room = Math.floor((size - 10) / 6.4);
      if (room >= Math.min(5, name.length)) text(shorten(name, room), x + 5, row.y + row.height / 2 + 0.5, palette.sheet, { size: 11 });
    }
    return tone;
  });
  drawShares(shares, row.y, row.height);
  if (shares.has("mark")) drawShares(new Map([["mark", shares.get("mark").map((v) => v > 0 ? 1 : 0)]]), row.y, row.height);
}

function drawThread(row) {
  const shares = drawColumn(row.thread, (i, x, size) => {
    if (size === 0) return "call";
    context.strokeStyle = palette.call;
    context.fillStyle = palette.call;
    context.globalAlpha = row.thread.launched[i] ? 1 : 0.28;
    context.fillRect(x, row.y, Math.max(size - (size > 4 ? 1 : 0), 1), row.height);
    context.globalAlpha = 1;
    return "call";
  });
  drawShares(shares, row.y, row.height);
}

function drawReplay(row) {
  const shares = drawColumn(row.device.replay, (i, x, size) => {
    if (size === 0) return "ink";
    context.fillStyle = palette.ink;
    context.fillRect(x, row.y + 2, size, 1);
    context.fillRect(x, row.y + 2, 1, row.height - 2);
    context.fillRect(x + size - 1, row.y + 2, 1, row.height - 2);
    return "ink";
  });
  drawShares(shares, row.y + 2, 2);
}

function drawMarks(side, row) {
  const marks = side.devices.length ? side.devices[0].marks : [];
  const from = firstAfter(marks, view.from), to = firstAfter(marks, view.to);
  const room = (view.right - view.left) / Math.max(1, to - from);

  if (room < 3) return;
  context.fillStyle = palette.ink;
  for (let i = from; i < to; i++) {
    const x = Math.round(xOf(marks[i]));
    context.globalAlpha = 0.55;
    for (let y = row.y + layout.side - 4; y < row.y + row.height - 4; y += 4) context.fillRect(x, y, 1, 2);
    context.globalAlpha = 1;
  }
}

function drawTitle(side, row) {
  const sum = (key) => side.devices.reduce((all, device) => all + device[key], 0);
  const y = row.y + layout.side / 2 - 1;
  const span = sum("span");
  let x = 8;

  text(side.short, x, y, palette.ink, { weight: 600, size: 12.5 });
  x += context.measureText(side.short).width + 12;
  if (side.devices.length)
    text(view.width < 560 ? `busy ${percent(sum("busy") / span)}`
      : `busy ${time(sum("busy"))} of ${time(span)}, ${percent(sum("busy") / span)}` +
        (side.devices.length > 1 ? `, on ${side.devices.length} devices` : ""), x, y, palette.soft, { size: 11.5 });
  else text("no work of a GPU", x, y, palette.soft);
}

function drawLabels(row) {
  const middle = row.y + row.height / 2 + 0.5, side = data.sides[row.side];
  if (row.kind === "thread" && row.first) text("host", 8, middle, palette.soft, { size: 11 });
  if (row.kind === "replay") text("replays", 8, middle + 1, palette.soft, { size: 11 });
  if (row.kind === "stream") {
    const several = side.devices.length > 1 && row.row === row.device.rows[0];
    const label = several ? `GPU ${row.device.device}, ${row.row.label.replace("stream ", "")}` : row.row.label;
    text(view.width < 560 ? label.replace("stream", "str.") : label, 8, middle, palette.soft, { size: 11 });
  }
}

function drawOverview(row) {
  const { from, to } = view;
  const height = (row.height - 6) / Math.max(1, data.sides.length);

  [view.from, view.to] = view.home;
  context.fillStyle = palette.faint;
  context.fillRect(view.left, row.y, view.right - view.left, row.height);
  data.sides.forEach((side, s) => {
    for (const device of side.devices)
      for (const one of device.drawn)
        drawShares(drawColumn(one, (i, x, size) => {
          if (size === 0) return "backward";
          context.fillStyle = palette.backward;
          context.fillRect(x, row.y + 3 + s * height, size, height - 1);
          return "backward";
        }), row.y + 3 + s * height, height - 1);
  });
  const left = Math.max(view.left, xOf(from)), right = Math.min(view.right, xOf(to));
  [view.from, view.to] = [from, to];
  context.strokeStyle = palette.ink;
  context.lineWidth = 1;
  context.strokeRect(Math.round(left) + 0.5, row.y + 0.5, Math.max(2, Math.round(right - left) - 1), row.height - 1);
  if (view.width >= 560) text("overview", 8, row.y + row.height / 2, palette.soft, { size: 11 });
}

function paint() {
  asked = false;
  palette = colours();
  ratio = theme.printing ? 3 : window.devicePixelRatio || 1;
  placeRows(canvas.parentElement.clientWidth);
  canvas.style.height = view.height + "px";
  canvas.width = Math.round(view.width * ratio);
  canvas.height = Math.round(view.height * ratio);
  patterns = {};
  for (const name of classNames) patterns[name] = hatch(context, name, palette[name], ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = palette.sheet;
  context.fillRect(0, 0, view.width, view.height);
  drawScale(view.height - layout.overview - 14);
  context.save();
  context.beginPath();
  context.rect(view.left, 0, view.right - view.left, view.height);
  context.clip();
  const of = (kind) => view.rows.filter((row) => row.kind === kind);
  of("band").forEach(drawBand);
  of("side").forEach((row) => drawMarks(data.sides[row.side], row));
  of("stream").forEach(drawStream);
  of("thread").forEach(drawThread);
  of("replay").forEach(drawReplay);
  context.restore();
  of("title").forEach((row) => drawTitle(data.sides[row.side], row));
  view.rows.forEach(drawLabels);
  of("overview").forEach(drawOverview);
  byId("window").textContent = `${time(Math.round(view.from))} to ${time(Math.round(view.to))}, a window of ${time(view.to - view.from)}`;
}

function refresh() {
  if (theme.printing) paint();
  else if (!asked) {
    asked = true;
    requestAnimationFrame(paint);
  }
}

// --- mouse, fingers, keys ---

function place(event) {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function hideTip() {
  byId("tip").hidden = true;
  canvas.classList.remove("over");
}

function showTip(found, x, y) {
  const tip = byId("tip");

  if (!found) return hideTip();
  canvas.classList.toggle("over", found.kind === "stream");
  tip.replaceChildren(...tipOf(found));
  tip.hidden = false;
  const left = Math.min(Math.max(x + 14, 4), view.width - tip.offsetWidth - 4);
  const under = y + 18;
  tip.style.left = Math.max(4, left) + "px";
  tip.style.top = (under + tip.offsetHeight > view.height + 60 ? y - tip.offsetHeight - 12 : under) + "px";
}

function startPointers() {
  const down = new Map();
  let moved = 0, window = null, overview = false;

  const jump = (x) => {
    const length = view.to - view.from;
    const at = view.home[0] + (x - view.left) / (view.right - view.left) * (view.home[1] - view.home[0]);
    setWindow(at - length / 2, at + length / 2);
    refresh();
  };
  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = place(event);
    const strip = view.rows.find((row) => row.kind === "overview");
    down.set(event.pointerId, x);
    canvas.setPointerCapture(event.pointerId);
    moved = 0;
    window = [view.from, view.to, [...down.values()]];
    overview = y >= strip.y;
    if (overview) jump(x);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (!down.has(event.pointerId)) {
      if (event.pointerType === "mouse") showTip(hit(x, y), x, y);
      return;
    }
    moved += Math.abs(x - down.get(event.pointerId));
    down.set(event.pointerId, x);
    if (overview) return jump(x);
    if (moved < 4) return;
    hideTip();
    canvas.classList.add("moving");
    const before = window[2], now = [...down.values()], perPixel = (window[1] - window[0]) / (view.right - view.left);
    if (now.length === 1) {
      const by = (before[0] - now[0]) * perPixel;
      setWindow(window[0] + by, window[1] + by);
    } else {
      const apart = Math.max(10, Math.abs(now[0] - now[1])) / Math.max(10, Math.abs(before[0] - before[1]));
      const at = window[0] + ((before[0] + before[1]) / 2 - view.left) * perPixel;
      const length = (window[1] - window[0]) / apart;
      const share = ((now[0] + now[1]) / 2 - view.left) / (view.right - view.left);
      setWindow(at - length * share, at + length * (1 - share));
    }
    refresh();
  });
  const up = (event) => {
    const [x, y] = place(event);
    if (!down.delete(event.pointerId)) return;
    canvas.classList.remove("moving");
    window = [view.from, view.to, [...down.values()]];
    if (moved >= 4 || overview || event.type !== "pointerup") return;
    const found = hit(x, y);
    showTip(found, x, y);
    if (found && found.kind === "stream") select(found.row.row.op[found.index], true);
    else if (!found) select(-1);
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse") hideTip();
  });
  canvas.addEventListener("dblclick", (event) => {
    if (zoom(0.5, place(event)[0])) refresh();
  });
  canvas.addEventListener("wheel", (event) => {
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const by = event.deltaMode === 1 ? 16 : 1;
    const changed = sideways
      ? pan((event.deltaX || event.deltaY) * by / (view.right - view.left))
      : zoom(Math.exp(Math.max(-240, Math.min(240, event.deltaY * by)) * 0.0025), place(event)[0]);
    // At the end of its range the wheel goes to the page.
    if (!changed) return;
    event.preventDefault();
    hideTip();
    refresh();
  }, { passive: false });
}

function startKeys() {
  const keys = {
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), "_": () => zoom(2),
    ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15),
    PageUp: () => pan(-0.9), PageDown: () => pan(0.9),
    Home: () => setWindow(...view.home), End: () => setWindow(view.home[1] - (view.to - view.from), view.home[1]),
    Escape: () => { select(-1); hideTip(); },
  };
  canvas.addEventListener("keydown", (event) => {
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    hideTip();
    act();
    refresh();
  });
}

function showStep() {
  const device = data.sides.flatMap((side) => side.devices).find((one) => one.marks.length > 0);
  const middle = (view.from + view.to) / 2;
  const marks = device.marks;
  const i = Math.max(0, Math.min(marks.length - 2, firstAfter(marks, middle) - 1));
  const start = marks[i], length = marks.length > 1 ? marks[i + 1] - marks[i] : device.start + device.span - marks[i];
  setWindow(start - length * 0.02, start + length * 1.02);
  refresh();
}

function startCanvas() {
  canvas = byId("canvas");
  context = canvas.getContext("2d");
  prepareView();
  paint();
  theme.listeners.push(refresh);
  new ResizeObserver(() => {
    if (canvas.parentElement.clientWidth !== view.width) refresh();
  }).observe(canvas.parentElement);
  startPointers();
  startKeys();
  byId("zoom-in").addEventListener("click", () => zoom(0.5) && refresh());
  byId("zoom-out").addEventListener("click", () => zoom(2) && refresh());
  byId("zoom-fit").addEventListener("click", () => setWindow(...view.home) && refresh());
  if (data.sides.some((side) => side.devices.some((device) => device.marks.length))) byId("zoom-step").addEventListener("click", showStep);
  else byId("zoom-step").remove();
}
