"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const views = new Map();

const isDark = () => root.dataset.theme === "dark";

/** Colours of text and lines in charts. The colours of bars are in the charts themselves. */
function colours() {
  const style = getComputedStyle(root);
  const text = style.getPropertyValue("--text").trim();
  const quiet = style.getPropertyValue("--quiet").trim();
  const line = style.getPropertyValue("--line").trim();
  return {
    axis: { labelColor: text, titleColor: quiet, gridColor: line, tickColor: line },
    legend: { labelColor: text, titleColor: quiet },
    title: { color: text },
  };
}

/** A chart with rows, as Vega reads them; the page holds columns. */
function withRows(spec) {
  const rows = (columns) => {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, index) =>
      Object.fromEntries(names.map((name) => [name, columns[name][index]])));
  };
  const source = (each) => (each.values ? { ...each, values: rows(each.values) } : each);
  return { ...spec, data: spec.data.map(source) };
}

async function draw(plot) {
  const name = plot.dataset.plot;
  views.get(name)?.finalize();
  const { view } = await vegaEmbed(plot, withRows(data.specs[name]), {
    mode: "vega",
    actions: false,
    ast: true, // Expressions are interpreted: the page's policy forbids eval.
    config: colours(),
    renderer: /^(block-map|rewrites)/.test(name) ? "canvas" : "svg",
  });
  views.set(name, view);
}

async function drawAll() {
  delete root.dataset.drawn;
  for (const plot of document.querySelectorAll(".plot")) {
    if (plot.offsetParent !== null) await draw(plot);
  }
  root.dataset.drawn = String(views.size);
}

function setTheme(theme) {
  root.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.setAttribute("aria-pressed", String(isDark()));
  button.textContent = isDark() ? "Light" : "Dark";
}

function download(name, blob) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${data.name}-${name}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const table = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n;
});

/** CRC-32 of a PNG chunk (PNG specification, annex D). */
function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = table[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/** Add the provenance of the numbers to a PNG, as an iTXt chunk after its header. */
async function withMetadata(blob) {
  const png = new Uint8Array(await blob.arrayBuffer());
  const text = new TextEncoder().encode(`iTXtfscost\0\0\0\0\0${JSON.stringify(data.provenance)}`);
  const chunk = new Uint8Array(text.length + 8);
  const numbers = new DataView(chunk.buffer);
  numbers.setUint32(0, text.length - 4);
  chunk.set(text, 4);
  numbers.setUint32(text.length + 4, crc32(text));
  return new Blob([png.slice(0, 33), chunk, png.slice(33)], { type: "image/png" });
}

async function savePicture(name, form) {
  const view = views.get(name);
  const page = getComputedStyle(root).getPropertyValue("--page").trim();
  const before = view.background();
  view.background(page);
  if (form === "png") {
    const canvas = await view.toCanvas(2);
    canvas.toBlob(async (blob) => download(`${name}.png`, await withMetadata(blob)));
  } else {
    const picture = new DOMParser().parseFromString(await view.toSVG(), "image/svg+xml");
    const metadata = picture.createElementNS("http://www.w3.org/2000/svg", "metadata");
    metadata.textContent = JSON.stringify(data.provenance);
    picture.documentElement.prepend(metadata);
    const text = new XMLSerializer().serializeToString(picture);
    download(`${name}.svg`, new Blob([text], { type: "image/svg+xml" }));
  }
  view.background(before);
}

/** Copy a text. Pages that are files have no clipboard interface, so select the text instead. */
async function copy(button) {
  const text = document.getElementById(button.dataset.copy);
  getSelection().selectAllChildren(text);
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Selected: press Ctrl-C";
  }
}

async function saveSamples() {
  const bytes = Uint8Array.from(atob(data.raw), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  download("samples.csv", new Blob([await new Response(stream).blob()], { type: "text/csv" }));
}

/** Sort a table by a column: by value if it has numbers, with rows without a value last. */
function sort(header) {
  const cells = [...header.parentElement.children];
  const column = cells.indexOf(header);
  const descending = header.getAttribute("aria-sort") === "ascending";
  for (const cell of cells) cell.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const body = header.closest("table").tBodies[0];
  const isNumber = header.classList.contains("number");
  const key = (row) => row.children[column].dataset.key;
  const compare = (a, b) => {
    if (!a || !b) return (a ? 0 : 1) - (b ? 0 : 1);
    const order = isNumber ? Number(a) - Number(b) : a.localeCompare(b);
    return descending ? -order : order;
  };
  body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b))));
}

async function choose() {
  const chooser = document.getElementById("profile");
  if (!chooser) return;
  for (const article of document.querySelectorAll(".profile")) {
    article.hidden = article.id !== `profile-${chooser.value}`;
  }
  for (const plot of document.querySelectorAll(".profile:not([hidden]) .plot")) {
    if (!views.has(plot.dataset.plot)) await draw(plot);
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const { figure, form, csv, raw } = button.dataset;
  if (figure) savePicture(figure, form);
  else if (csv) download(`${csv}.csv`, new Blob([data.csv[csv]], { type: "text/csv" }));
  else if (raw) saveSamples();
  else if (button.dataset.copy) copy(button);
  else if (button.classList.contains("sort")) sort(button.closest("th"));
  else if (button.id === "theme") {
    setTheme(isDark() ? "light" : "dark");
    drawAll();
  }
});
document.getElementById("profile")?.addEventListener("change", choose);
window.addEventListener("beforeprint", () => {
  for (const article of document.querySelectorAll(".profile")) article.hidden = false;
  for (const plot of document.querySelectorAll(".plot")) {
    if (!views.has(plot.dataset.plot)) draw(plot);
  }
});
window.addEventListener("afterprint", choose);

setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
choose().then(drawAll);
