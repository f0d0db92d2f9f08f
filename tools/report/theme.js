// Light and dark, and the hatching that tells classes of gaps apart without colour.

const theme = { listeners: [], printing: false };

function storedTheme() {
  try {
    return localStorage.getItem("gexec-theme");
  } catch (_) {
    return null; // pages from disk may have no storage
  }
}

function isDark() {
  return document.documentElement.dataset.theme === "dark";
}

function setTheme(dark, store) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  byId("theme").textContent = dark ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", dark ? "Light colours" : "Dark colours");
  if (store) {
    try {
      localStorage.setItem("gexec-theme", dark ? "dark" : "light");
    } catch (_) { /* it lasts as long as the page */ }
  }
  for (const listener of theme.listeners) listener();
}

function startTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const stored = storedTheme();
  let before = false;

  setTheme(stored ? stored === "dark" : system.matches, false);
  system.addEventListener("change", () => {
    if (!storedTheme()) setTheme(system.matches, false);
  });
  byId("theme").addEventListener("click", () => setTheme(!isDark(), true));
  // Paper is white, and has more dots than a screen.
  window.addEventListener("beforeprint", () => {
    before = isDark();
    theme.printing = true;
    setTheme(false, false);
  });
  window.addEventListener("afterprint", () => {
    theme.printing = false;
    setTheme(before, false);
  });
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue("--" + name).trim();
  const all = {};
  for (const name of ["paper", "sheet", "ink", "soft", "rule", "faint", "forward", "backward",
    "optimizer", "step", "call", "host", "launch", "device", "unknown", "mark"]) all[name] = of(name);
  return all;
}

// A tile of the hatching of a class, for a canvas of `ratio` dots a pixel: strokes rise
// for host, fall for launch, lie for device, and cross for unknown.
function hatch(context, name, colour, ratio) {
  const size = 8 * ratio;
  const tile = document.createElement("canvas");
  const at = tile.getContext("2d");

  tile.width = tile.height = size;
  at.globalAlpha = isDark() ? 0.16 : 0.13;
  at.fillStyle = colour;
  at.fillRect(0, 0, size, size);
  at.globalAlpha = 0.95;
  at.strokeStyle = colour;
  at.lineWidth = (name === "device" ? 1 : 1.25) * ratio;
  at.beginPath();
  if (name === "host" || name === "unknown")
    for (const shift of [-size, 0, size]) {
      at.moveTo(shift - ratio, size + ratio);
      at.lineTo(shift + size + ratio, -ratio);
    }
  if (name === "launch" || name === "unknown")
    for (const shift of [-size, 0, size]) {
      at.moveTo(shift - ratio, -ratio);
      at.lineTo(shift + size + ratio, size + ratio);
    }
  if (name === "device")
    for (const y of [0.25, 0.75]) {
      at.moveTo(0, size * y);
      at.lineTo(size, size * y);
    }
  at.stroke();
  const pattern = context.createPattern(tile, "repeat");
  if (pattern.setTransform) pattern.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern;
}

// A small picture of a class's hatching, for legends and tables.
function swatch(name) {
  const ratio = 2;
  const canvas = make("canvas", { class: "swatch", width: 26 * ratio, height: 12 * ratio, "aria-hidden": "true" });
  const paint = () => {
    const at = canvas.getContext("2d");
    const colour = colours()[name];
    at.setTransform(ratio, 0, 0, ratio, 0, 0);
    at.clearRect(0, 0, 26, 12);
    at.fillStyle = classNames.includes(name) ? hatch(at, name, colour, ratio) : colour;
    at.fillRect(0, 0, 26, 12);
    if (classNames.includes(name)) {
      at.strokeStyle = colour;
      at.strokeRect(0.5, 0.5, 25, 11);
    }
  };
  paint();
  theme.listeners.push(paint);
  return canvas;
}
