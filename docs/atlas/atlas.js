// Draws the table of docs/atlas.md from ATLAS (data.js, made by tools/atlas.py).
(() => {
  const place = document.getElementById("atlas");
  const bytes = (value) => {
    const units = ["B", "KiB", "MiB", "GiB"];
    let at = 0;
    while (value >= 1000 && at < units.length - 1) { value /= 1024; at++; }
    return `${value >= 100 || at === 0 ? Math.round(value) : value.toPrecision(3)} ${units[at]}`;
  };
  const count = (value) => Math.round(value).toLocaleString("en");
  const repetitions = ({ all }) =>
    all.length === 1
      ? "one repetition"
      : `medians of ${all.length} repetitions (${all.map(bytes).join(", ")} written)`;
  const [first, second] = ATLAS.devices;
  const MEASURES = {
    "bytes written": [(cell) => cell.written, bytes],
    "bytes written per byte of the programs": [
      (cell) => cell.program >= 2 ** 20 ? cell.written / cell.program : NaN,
      (value) => value.toPrecision(3),
    ],
    "write requests": [(cell) => cell.requests, count],
    "flushes": [(cell) => cell.flushes, count],
    [`NAND bytes, ${first}`]: [(cell) => cell.nand[0], bytes],
    [`NAND bytes, ${second}`]: [(cell) => cell.nand[1], bytes],
  };
  const state = { kernel: Object.keys(ATLAS.cells)[0], measure: "bytes written", words: "", by: null };

  const make = (name, inside, set = {}) => {
    const node = Object.assign(document.createElement(name), set);
    node.append(...[inside].flat().filter((each) => each !== undefined));
    return node;
  };
  const choice = (label, names, key) => {
    const list = make("select", names.map((name) => make("option", name, { value: name })));
    list.value = state[key];
    list.onchange = () => { state[key] = list.value; draw(); };
    return make("label", [label + " ", list]);
  };
  const filter = make("input", [], { type: "search", placeholder: "sqlite, btrfs …" });
  filter.oninput = () => { state.words = filter.value.toLowerCase(); draw(); };

  const wide = make("div", [], { className: "wide" });
  const detail = make("div", [], { className: "detail", hidden: true });
  place.append(
    make("div", [
      choice("Linux", Object.keys(ATLAS.cells), "kernel"),
      choice("show", Object.keys(MEASURES), "measure"),
      make("label", ["only ", filter]),
    ], { className: "controls" }), wide, detail);

  const matches = (name) => state.words.split(/\s+/).some((word) => word && name.includes(word));

  function draw() {
    const cells = ATLAS.cells[state.kernel];
    const [value, text] = MEASURES[state.measure];
    let workloads = ATLAS.workloads.filter((name) => name in cells);
    let profiles = ATLAS.profiles.filter((name) => workloads.some((each) => name in cells[each]));
    // Words that name workloads choose rows; words that name profiles choose columns.
    if (workloads.some(matches)) workloads = workloads.filter(matches);
    if (profiles.some(matches)) profiles = profiles.filter(matches);
    const of = (workload, profile) =>
      profile in cells[workload] ? value(cells[workload][profile]) : NaN;
    const least = (workload) =>
      Math.min(...profiles.map((each) => of(workload, each)).filter((each) => !isNaN(each)));
    // The least of a row may be 0.
    const ratio = (workload, profile) => {
      const found = of(workload, profile);
      return found === least(workload) ? 1 : found / least(workload);
    };
    // A column sorts by its ratio to the least of each row: where is this profile at its best?
    const order = (workload) => {
      const found = ratio(workload, state.by);
      return isNaN(found) ? Number.MAX_VALUE : Math.min(found, Number.MAX_VALUE);
    };
    if (state.by) workloads.sort((a, b) => order(a) - order(b));

    const heading = (profile) => {
      const button = make("button", profile + (state.by === profile ? " ▲" : ""), {
        title: "sort by how near this profile comes to the least of each row",
      });
      button.onclick = () => { state.by = state.by === profile ? null : profile; draw(); };
      return make("th", button);
    };
    const entry = (workload, profile) => {
      const found = of(workload, profile);
      if (isNaN(found)) return make("td", "—");
      const button = make("button", text(found));
      const cell = make("td", button);
      const times = ratio(workload, profile);
      // Each doubling over the least of the row makes the cell darker, up to 16 times.
      cell.style.background = `rgba(228, 87, 86, ${Math.min(Math.log2(times) / 4, 1) * 0.55})`;
      if (found === least(workload)) cell.className = "least";
      cell.title = isFinite(times)
        ? `${times.toFixed(2)} × the least of this row`
        : "the least of this row is 0";
      button.onclick = () => {
        wide.querySelectorAll(".chosen").forEach((each) => each.classList.remove("chosen"));
        cell.classList.add("chosen");
        tell(workload, profile, cells[workload][profile]);
      };
      return cell;
    };
    wide.replaceChildren(make("table", [
      make("thead", make("tr", [make("th", "workload"), ...profiles.map(heading)])),
      make("tbody", workloads.map((workload) =>
        make("tr", [make("th", workload), ...profiles.map((each) => entry(workload, each))]))),
    ], { className: "figures" }));
    detail.hidden = true;
  }

  function tell(workload, profile, cell) {
    const [data, journal, metadata] = cell.kinds;
    const most = Math.max(...cell.causes.map(([, size]) => size));
    detail.replaceChildren(
      make("strong", `${workload} on ${profile}, Linux ${state.kernel}`),
      make("p", `${bytes(cell.written)} written for ${bytes(cell.program)} that the programs wrote: ` +
        `${bytes(data)} file data, ${bytes(journal)} journal or log, ${bytes(metadata)} metadata; ` +
        `${count(cell.requests)} requests, ${count(cell.flushes)} flushes, ` +
        `${repetitions(cell)}. ` +
        `NAND: ${bytes(cell.nand[0])} in ${first}, ${bytes(cell.nand[1])} in ${second}.`),
      make("div", ["Written because of:", ...cell.causes.map(([name, size]) => {
        const bar = make("span", [], { className: "bar" });
        bar.style.width = `${(8 * size) / most}rem`;
        return make("div", [bar, `${name.replaceAll("_", " ")}, ${bytes(size)}`]);
      })]),
      make("code", cell.command),
      make("span", ["Why each byte was written: ", make("tt", "fscost explain fscost-runs/latest")]),
    );
    detail.hidden = false;
  }
  draw();
})();
