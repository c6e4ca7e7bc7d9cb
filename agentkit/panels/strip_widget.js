// The player of the context strip. It needs the kernel only for new data: steps, rows, tooltips and keys live here.
//
// Elements are kept when data or step change and only their places are set anew, so that the style sheet can animate them.

const STEP_MS = 700; // pause between two steps of "Run"
const LONGEST_RUN_MS = 25_000;
const VALUES = ["prompt", "read", "written", "fresh", "output"];

const make = (tag, name, parent, text = "") => {
  const node = document.createElement(tag);
  node.className = name;
  node.textContent = text;
  parent?.append(node);
  return node;
};

const set = (node, text) => { if (node.textContent !== text) node.textContent = text; };

const count = (number) => number.toLocaleString("en");

// JupyterLab's command mode takes arrows, Enter and Space away from whatever has the focus, unless it says this.
const keepsKeys = (node) => { node.dataset.lmSuppressShortcuts = "true"; return node; };

const MOST_MOVING = 200; // pieces; more appear at once, because starting so many animations takes longer than they do

function dress(node, part, state, grows = false) {
  const name = `ak-piece ak-${part} ak-is-${state}${grows ? " ak-new" : ""}`;
  if (node.className !== name) node.className = name;
}

// ------------------------------------------------------------------------------------------------------------- one row

class Row {
  constructor(side, index) {
    this.side = side;
    this.node = make("div", "ak-row", side.rows);
    this.node.id = `${side.id}-${index}`;
    this.node.setAttribute("role", "option");
    this.marks = make("span", "ak-marks", this.node);
    this.number = make("span", "ak-number", this.node);
    this.bar = make("span", "ak-bar", this.node);
    this.label = make("span", "ak-label", this.bar);
    this.values = VALUES.map((name) => make("span", `ak-value ak-${name}`, this.node));
    this.pieces = new Map();
    this.node.addEventListener("click", () => side.choose(index));
  }

  // first, last: the requests that this row stands for; request: the one it shows, null before it was sent.
  draw(first, last, request, marks) {
    const { data, width, size } = this.side, now = [data, request, width, size];
    if (this.before?.every((value, i) => value === now[i])) return;
    this.before = now;
    set(this.number, first === last ? `${first + 1}` : `${first + 1}–${last + 1}`);
    set(this.marks, marks.map((mark) => MARKS[mark] ?? "?").join(""));
    this.node.classList.toggle("ak-later", request === null);
    this.node.classList.toggle("ak-cut", marks.includes("compaction"));
    const row = request === null ? null : data.rows[request];
    this.values.forEach((node, i) => set(node, row ? count(row.values[i]) : ""));
    this.drawPieces(row?.pieces ?? []);
    const text = row ? row.sentence : `Request ${first + 1}: not sent yet`;
    if (this.node.getAttribute("aria-label") !== text) this.node.setAttribute("aria-label", text);
    const free = row ? 1 - row.values[0] / this.side.top : 0;
    set(this.label, free * this.side.width > 13 * this.side.size ? marks.join(" · ") : "");
    this.label.style.left = `calc(${(1 - free) * 100}% + 6px)`;
  }

  drawPieces(pieces) {
    const { top, width, size, looks } = this.side, old = this.pieces, times = new Map();
    this.pieces = new Map();
    this.order = [];
    let at = 0;
    for (const [part, state, tokens, note] of pieces) {
      const name = `${note}.${state}`, again = times.get(name) ?? 0, key = `${name}.${again}`;
      times.set(name, again + 1);
      const kept = old.get(key), node = kept ?? make("span", "", this.bar);
      old.delete(key);
      dress(node, part, state, !kept && this.side.moves);
      node.piece = { part, state, tokens, note };
      const wide = (tokens / top) * width, look = looks[part];
      set(node, wide > look.name.length * size * 0.62 + 6 ? look.name : wide > size * 1.1 ? look.letter : "");
      node.style.left = `${(at / top) * 100}%`;
      node.style.width = `${(tokens / top) * 100}%`;
      this.pieces.set(key, node);
      this.order.push(node);
      at += tokens;
    }
    for (const node of old.values()) node.remove();
  }

}

const MARKS = { compaction: "▼", "cache miss": "✖", "summary refused": "⊘", "no bill": "≈" };

// ------------------------------------------------------------------------------------------------------------ one side

let made = 0;

class Side {
  constructor(player) {
    this.player = player;
    this.id = `ak-strip-${made++}`;
    this.node = make("section", "ak-side", player.sides);
    this.title = make("div", "ak-title", this.node);
    this.lines = make("div", "ak-said", this.node);
    const chart = make("div", "ak-chart", this.node);
    this.head = make("div", "ak-row ak-head", chart);
    this.head.setAttribute("aria-hidden", "true");
    make("span", "ak-marks", this.head);
    make("span", "ak-number", this.head);
    this.scale = make("span", "ak-bar", this.head);
    for (const name of VALUES) make("span", `ak-value ak-${name}`, this.head, name);
    this.rows = keepsKeys(make("div", "ak-rows", chart));
    this.rows.tabIndex = 0;
    this.rows.setAttribute("role", "listbox");
    this.overlay = make("div", "ak-row ak-over", chart);
    this.overlay.setAttribute("aria-hidden", "true");
    make("span", "ak-marks", this.overlay);
    make("span", "ak-number", this.overlay);
    this.marks = make("span", "ak-bar", this.overlay);
    for (const name of VALUES) make("span", `ak-value ak-${name}`, this.overlay);
    this.status = make("p", "ak-status", this.node);
    this.status.setAttribute("role", "status");
    this.status.setAttribute("aria-live", "polite");
    this.rows.addEventListener("pointerover", (event) => this.point(event.target));
    this.rows.addEventListener("pointerleave", () => player.hideTip());
    this.drawn = [];
    this.chosen = this.block = null;
    this.rows.addEventListener("keydown", (event) => this.key(event));
    this.rows.addEventListener("blur", () => { this.chosen = this.block = null; player.hideTip(); this.speak(); });
  }

  show(data, common) {
    this.data = data;
    this.looks = common.looks;
    this.states = common.states;
    this.top = common.top;
    this.group = common.group;
    this.chosen = this.block = null;
    this.node.style.setProperty("--value", `${Math.max(3.6, count(common.top).length * 0.6 + 0.9)}em`);
    this.node.classList.toggle("ak-has-written", data.written);
    const about = data.title ? `${data.title}. ${data.alt}` : data.alt;
    this.rows.setAttribute("aria-label", `${about} Up and down: requests; left and right: blocks of a request.`);
    set(this.title, data.title);
    const rows = Math.ceil(data.rows.length / this.group), widest = String(data.rows.length).length;
    this.node.style.setProperty("--number", `${(this.group > 1 ? 2 * widest + 1 : Math.max(2, widest)) * 0.62 + 0.6}em`);
    while (this.drawn.length < rows) this.drawn.push(new Row(this, this.drawn.length));
    for (const row of this.drawn.splice(rows)) row.node.remove();
    this.axis();
  }

  axis() {
    this.scale.replaceChildren();
    const step = 10 ** (String(this.top).length - 1);
    make("span", "ak-scale", this.scale, `${count(step)} tokens`).style.width = `${(step / this.top) * 100}%`;
    this.marks.replaceChildren();
    for (const [name, tokens] of this.data.lines) {
      const line = make("span", `ak-line ak-line-${name}`, this.marks);
      line.style.left = `${(tokens / this.top) * 100}%`;
      const label = make("span", "ak-line-name", line, `${name} ${count(tokens)}`);
      label.style.transform = `translateX(${tokens > 0.8 * this.top ? -100 : -50}%)`;
    }
  }

  // The request that stands in row `index`, null before it was sent.
  inRow(index) {
    const first = index * this.group, last = Math.min(first + this.group, this.shown) - 1;
    return last < first ? null : last;
  }

  draw(step) {
    const before = this.shown;
    this.shown = this.data.shown[Math.min(step, this.data.shown.length - 1)];
    if (before !== this.shown) this.chosen = this.block = null;
    this.step = step;
    this.width = this.scale.clientWidth || 300;
    this.size = parseFloat(getComputedStyle(this.node).fontSize) || 13;
    const changed = this.drawn.filter((row, i) => row.before?.[0] !== this.data || row.before[1] !== this.inRow(i));
    const pieces = changed.map((row) => this.data.rows[this.inRow(this.drawn.indexOf(row))]?.pieces.length ?? 0);
    this.moves = pieces.reduce((sum, length) => sum + length, 0) <= MOST_MOVING;
    this.drawn.forEach((row, index) => {
      const first = index * this.group, last = Math.min(first + this.group, this.data.rows.length) - 1;
      const sent = this.data.rows.slice(first, Math.min(last + 1, this.shown));
      row.draw(first, last, this.inRow(index), [...new Set(sent.flatMap((r) => r.marks))]);
    });
    this.speak();
  }

  choose(index) {
    const last = Math.ceil(this.shown / this.group) - 1;
    this.chosen = last < 0 ? null : Math.max(0, Math.min(last, index));
    this.block = null;
    this.player.hideTip();
    this.speak();
  }

  speak() {
    const last = Math.ceil(this.shown / this.group) - 1, current = this.chosen ?? last;
    this.drawn.forEach((row, index) => {
      row.node.classList.toggle("ak-chosen", index === current);
      row.node.setAttribute("aria-selected", String(index === current));
    });
    if (current >= 0) this.rows.setAttribute("aria-activedescendant", this.drawn[current].node.id);
    else this.rows.removeAttribute("aria-activedescendant");
    const [sentence = "", ...lines] = this.data.said[Math.min(this.step, this.data.said.length - 1)] ?? [];
    this.sayLines(lines);
    const about = this.chosen === null && sentence ? sentence : this.aboutRow(current);
    set(this.status, this.block === null ? about : this.aboutPiece(this.drawn[current].order[this.block].piece));
  }

  sayLines(lines) {
    const wanted = JSON.stringify(lines);
    if (this.lines.dataset.lines === wanted) return;
    this.lines.dataset.lines = wanted;
    this.lines.replaceChildren();
    for (const [name, text] of lines) {
      const line = make("p", "", this.lines);
      make("b", "", line, `${name}: `);
      line.append(text);
      line.title = text; // the style sheet shows three lines of it
    }
  }

  aboutRow(index) {
    const request = index < 0 ? null : this.inRow(index);
    return request === null ? "Nothing has been sent yet." : this.data.rows[request].sentence;
  }

  aboutPiece({ state, tokens, note }) {
    return `${this.data.notes[note]} – ${count(tokens)} tokens, ${this.states[state]}.`;
  }

  tell(node) { this.player.showTip(node, this.aboutPiece(node.piece)); }

  point(node) {
    if (node.piece) this.tell(node);
    else this.player.hideTip();
  }

  key(event) {
    const last = Math.ceil(this.shown / this.group) - 1, at = this.chosen ?? last;
    const rows = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: last };
    if (event.key in rows) this.choose(rows[event.key]);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") this.alongRow(at, event.key === "ArrowRight" ? 1 : -1);
    else if (event.key === "Escape") { this.block = null; this.player.hideTip(); this.speak(); }
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  alongRow(at, by) {
    const order = at < 0 ? [] : this.drawn[at].order;
    if (!order.length) return;
    const next = this.block === null ? (by > 0 ? 0 : order.length - 1) : this.block + by;
    this.block = Math.max(0, Math.min(order.length - 1, next));
    this.chosen = at;
    this.speak();
    this.tell(order[this.block]);
  }
}

// ---------------------------------------------------------------------------------------------------------- the player

class Player {
  constructor(model, el) {
    this.model = model;
    this.root = make("div", "ak-strip", el);
    this.bar();
    this.sides = make("div", "ak-sides", this.root);
    this.legend = make("div", "ak-legend", this.root);
    this.note = make("p", "ak-note", this.root);
    this.tip = make("div", "ak-tip", this.root);
    this.tip.setAttribute("aria-hidden", "true"); // the status line says the same
    this.shown = [];
    this.timer = null;
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.root);
  }

  bar() {
    const bar = make("div", "ak-controls", this.root);
    const button = (text, press) => {
      const node = keepsKeys(make("button", "ak-button", bar, text));
      node.type = "button";
      node.addEventListener("click", press);
      return node;
    };
    button("Step", () => { this.stop(); this.go(this.step + 1); });
    button("Run to next event", () => this.run(this.nextStop()));
    this.runButton = button("Run", () => (this.timer ? this.stop() : this.run(this.data.steps)));
    button("Reset", () => { this.stop(); this.go(0); });
    const label = make("label", "ak-slider", bar, "Step ");
    this.slider = keepsKeys(make("input", "", label));
    this.slider.type = "range";
    this.slider.min = 0;
    this.slider.setAttribute("aria-label", "Step");
    this.slider.addEventListener("input", () => { this.stop(); this.go(Number(this.slider.value)); });
    this.place = make("span", "ak-place", bar);
  }

  get data() { return this.model.get("data"); }
  get step() { return this.model.get("step"); }

  nextStop() { return this.data.stops.find((at) => at > this.step) ?? this.data.steps; }

  go(step) {
    const to = Math.max(0, Math.min(this.data.steps, step));
    if (to === this.step) return;
    this.model.set("step", to);
    try { this.model.save_changes(); } catch { /* no kernel: the page goes on by itself */ }
  }

  run(target) {
    this.stop();
    if (this.step >= this.data.steps) this.go(0);
    const pause = Math.min(STEP_MS, LONGEST_RUN_MS / Math.max(1, this.data.steps));
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.go(target);
    const on = () => {
      this.go(this.step + 1);
      if (this.step >= target) this.stop();
    };
    this.timer = setInterval(on, pause);
    set(this.runButton, "Stop");
    on();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    set(this.runButton, "Run");
  }

  show() {
    this.stop();
    const { data } = this;
    while (this.shown.length < data.sides.length) this.shown.push(new Side(this));
    for (const side of this.shown.splice(data.sides.length)) side.node.remove();
    this.root.classList.toggle("ak-two", data.sides.length > 1);
    this.root.classList.toggle("ak-lined", data.sides.some((side) => side.lines.length > 0));
    this.shown.forEach((side, i) => side.show(data.sides[i], data));
    this.drawLegend();
    this.slider.max = data.steps;
    const many = `Each row stands for up to ${data.group} requests: it shows the last one sent, with the marks of all.`;
    set(this.note, data.group > 1 ? many : "");
    this.draw();
  }

  draw() {
    if (!this.data.sides || this.shown.length !== this.data.sides.length) return;
    this.root.classList.toggle("ak-large", this.model.get("large"));
    this.hideTip();
    for (const side of this.shown) side.draw(this.step);
    this.slider.value = this.step;
    set(this.place, `${this.step} of ${this.data.steps}`);
    this.slider.setAttribute("aria-valuetext", `step ${this.step} of ${this.data.steps}`);
  }

  drawLegend() {
    const pieces = this.data.sides.flatMap((side) => side.rows.flatMap((row) => row.pieces));
    const parts = new Set(pieces.map((p) => p[0])), states = new Set(pieces.map((p) => p[1]));
    const marks = new Set(this.data.sides.flatMap((side) => side.rows.flatMap((row) => row.marks)));
    this.legend.replaceChildren();
    const entry = (text, part, state) => {
      const node = make("span", "ak-entry", this.legend);
      dress(make("span", "ak-piece", node), part, state);
      node.append(text);
    };
    for (const [part, look] of Object.entries(this.data.looks)) if (parts.has(part)) entry(look.name, part, "fresh");
    for (const [state, name] of Object.entries(this.data.states)) if (states.has(state)) entry(name, "tools", state);
    for (const [mark, sign] of Object.entries(MARKS)) if (marks.has(mark)) make("span", "ak-entry", this.legend, `${sign} ${mark}`);
  }

  showTip(node, text) {
    set(this.tip, text);
    const root = this.root.getBoundingClientRect(), box = node.getBoundingClientRect();
    this.tip.classList.add("ak-on");
    const most = root.width - this.tip.offsetWidth - 4;
    this.tip.style.left = `${Math.max(0, Math.min(most, box.left - root.left))}px`;
    this.tip.style.top = `${box.bottom - root.top + 4}px`;
  }

  hideTip() { this.tip.classList.remove("ak-on"); }
}

function render({ model, el }) {
  const player = new Player(model, el);
  const show = () => player.show(), draw = () => player.draw();
  model.on("change:data", show);
  model.on("change:step change:large", draw);
  show();
  return () => {
    player.stop();
    player.watcher.disconnect();
    model.off("change:data", show);
    model.off("change:step change:large", draw);
  };
}

export default { render };
