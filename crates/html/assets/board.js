// All timelines of the page under one zoom and one crosshair, with keys, search and the panel of details.

const LEFT = ["runs on", "stays runnable", "preempted", "sleeps", "sleeps uninterruptibly", "ends", "leaves"];

class Board {
  constructor(element, timelines) {
    this.element = element;
    this.panes = [];
    this.hover = null;
    this.selected = null;
    this.colours = "task";
    this.rowHeight = 0;
    this.pending = 0;
    this.stats = { draws: [], firstPicture: 0 };
    this.duration = Math.max(...timelines.map((timeline) => timeline.duration));
    [this.from, this.to] = [0, this.duration];
    element.innerHTML = `
      <div class="bar">
        <input type="search" placeholder="Search: a task, a pid, cpu 12, a reason  ( / )" aria-label="Search">
        <label>Colour <select><option value="task">task</option><option value="queue">run queue</option></select></label>
        <button data-act="out" title="s">&minus;</button><button data-act="in" title="w">+</button>
        <button data-act="fit" title="f">All</button>
        <button data-act="taller">Taller rows</button><button data-act="lower">Lower rows</button>
        <button data-act="perfetto">Save for Perfetto</button>
        <span class="hint">w s zoom, a d move, f all, / search, n next, Esc clear</span>
      </div>
      <div class="axis"><canvas></canvas></div><div class="panes"></div>
      <div class="status" aria-live="off">&nbsp;</div><div class="panel" aria-live="polite"></div>`;
    this.axis = element.querySelector(".axis canvas");
    this.status = element.querySelector(".status");
    this.panel = element.querySelector(".panel");
    this.search = element.querySelector("input");
    const holder = element.querySelector(".panes");
    for (const timeline of timelines) {
      const div = document.createElement("div");
      div.className = "pane";
      holder.append(div);
      this.panes.push(new Pane(timeline, div, this));
    }
    for (const pane of this.panes) {
      pane.layout(0);
      this.listen(pane);
    }
    this.controls();
    addEventListener("resize", () => this.relayout());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
    this.readHash();
  }

  relayout() {
    for (const pane of this.panes) pane.layout(this.rowHeight);
    this.redraw();
  }

  recolour() {
    for (const pane of this.panes) pane.highlight(pane.highlighted);
    this.redraw();
  }

  /** `#from=0.5&to=0.6&task=NAME-PID` opens the page at that place; times in seconds. */
  readHash() {
    const hash = new URLSearchParams(location.hash.slice(1));
    const [from, to] = [parseFloat(hash.get("from")), parseFloat(hash.get("to"))];
    if (from >= 0 && to > from) [this.from, this.to] = [from * 1e9, to * 1e9];
    if (hash.get("rows")) this.rowHeight = Math.max(1, Math.min(40, Number(hash.get("rows")) || 1));
    if (hash.get("colour") === "queue") this.colours = this.element.querySelector("select").value = "queue";
    if (hash.get("task")) this.wanted = hash.get("task");
  }

  redraw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
  }

  draw() {
    const begin = performance.now();
    for (const pane of this.panes) {
      const loaded = pane.timeline.chunks.filter((chunk) => chunk.data.runs).length;
      if (pane.highlighted > 1 && loaded !== pane.pathChunks) pane.highlight(pane.highlighted);
      pane.draw();
    }
    this.drawAxis();
    this.stats.draws.push(performance.now() - begin);
  }

  drawAxis() {
    const ratio = devicePixelRatio || 1;
    const pane = this.panes[0], width = pane.width;
    size(this.axis, width, 18, ratio);
    const context = this.axis.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, 18);
    context.fillStyle = pane.ink;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "top";
    const rough = (this.to - this.from) / (width - GUTTER) * 130;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
    const digits = Math.max(0, 9 - Math.floor(Math.log10(step) + 1e-9));
    for (let time = Math.ceil(this.from / step) * step; time <= this.to; time += step) {
      const x = pane.xOf(time);
      context.fillRect(x, 12, 1, 6);
      if (x < width - 60) context.fillText(`${(time / 1e9).toFixed(Math.min(9, digits))} s`, x + 3, 1);
    }
  }

  show(from, to) {
    const least = 50;
    let length = Math.min(this.duration, Math.max(least, to - from));
    const middle = (from + to) / 2;
    this.from = Math.max(0, Math.min(this.duration - length, middle - length / 2));
    this.to = this.from + length;
    this.redraw();
  }

  zoom(factor, at = this.hover ?? (this.from + this.to) / 2) {
    const length = Math.max(50, Math.min(this.duration, (this.to - this.from) * factor));
    const share = (at - this.from) / (this.to - this.from);
    this.show(at - share * length, at + (1 - share) * length);
  }

  move(share) {
    const by = (this.to - this.from) * share;
    this.show(this.from + by, this.to + by);
  }

  controls() {
    const acts = {
      in: () => this.zoom(0.5), out: () => this.zoom(2), fit: () => this.show(0, this.duration),
      taller: () => this.rows(1.5), lower: () => this.rows(1 / 1.5),
      perfetto: () => savePerfetto(this.panes),
    };
    for (const button of this.element.querySelectorAll("button[data-act]")) {
      button.addEventListener("click", acts[button.dataset.act]);
    }
    this.element.querySelector("select").addEventListener("change", (event) => {
      this.colours = event.target.value;
      this.redraw();
    });
    const keys = {
      w: () => this.zoom(0.7), s: () => this.zoom(1 / 0.7), a: () => this.move(-0.2), d: () => this.move(0.2),
      f: () => this.show(0, this.duration), "/": () => this.search.focus(), n: () => this.next(1), N: () => this.next(-1),
      Escape: () => this.clear(), "+": acts.taller, "-": acts.lower,
    };
    addEventListener("keydown", (event) => {
      const typing = event.target.matches?.("input, select, textarea");
      if (event.ctrlKey || event.metaKey || event.altKey || (typing && event.key !== "Escape")) return;
      const act = keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    this.search.addEventListener("input", () => this.find(this.search.value));
    this.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.next(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") this.search.blur();
    });
  }

  rows(factor) {
    const now = this.panes[0].rowHeight;
    this.rowHeight = Math.max(1, Math.min(40, factor > 1 ? Math.ceil(now * factor) : Math.floor(now * factor)));
    this.relayout();
  }

  listen(pane) {
    const { canvas, strip } = pane;
    let drag = null;
    canvas.addEventListener("mousemove", (event) => {
      const { offsetX: x, offsetY: y } = event;
      if (drag && Math.abs(x - drag.x) > 3) drag.moved = true;
      if (drag?.moved) {
        const by = (drag.x - x) / (pane.width - GUTTER) * (drag.to - drag.from);
        this.show(drag.from + by, drag.to + by);
      }
      this.hover = x >= GUTTER ? pane.timeOf(x) : null;
      this.tell(pane, y);
      this.redraw();
    });
    canvas.addEventListener("mousedown", (event) => { drag = { x: event.offsetX, from: this.from, to: this.to }; });
    addEventListener("mouseup", () => { setTimeout(() => { drag = null; }); });
    canvas.addEventListener("click", (event) => { if (!drag?.moved) this.click(pane, event.offsetX, event.offsetY); });
    canvas.addEventListener("mouseleave", () => { this.hover = null; this.redraw(); });
    canvas.addEventListener("dblclick", () => this.zoom(0.25));
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.shiftKey || pane.spacer.offsetHeight === 0) {
        if (!event.ctrlKey && !event.shiftKey && !event.altKey) return;
        event.preventDefault();
        const by = event.deltaY || event.deltaX;
        if (event.ctrlKey || event.altKey) this.zoom(by > 0 ? 1.25 : 0.8, pane.timeOf(event.offsetX));
        else this.move(by > 0 ? 0.1 : -0.1);
      }
    }, { passive: false });
    strip.addEventListener("click", (event) => {
      const at = (event.offsetX - GUTTER) / (pane.width - GUTTER) * this.duration;
      const half = (this.to - this.from) / 2;
      this.show(at - half, at + half);
    });
  }

  /** The line below the pictures: what is under the pointer. */
  tell(pane, y) {
    const row = pane.rowAt(y);
    if (!row || this.hover === null) return;
    const { timeline } = pane, { cpu } = row;
    const place = timeline.head.cpus;
    const parts = [instant(this.hover), `CPU ${cpu} (node ${place.node[cpu]}, LLC ${place.llc[cpu]}, core ${place.core[cpu]})`];
    const stretch = timeline.stretchAt(cpu, this.hover);
    if (stretch) {
      parts.push(stretch.task ? `${timeline.name(stretch.task)} for ${span(stretch.to - stretch.from)}, then ${LEFT[stretch.left]}`
        : `idle for ${span(stretch.to - stretch.from)}`);
      parts.push(`run queue ${timeline.queueAt(cpu, this.hover)}`);
    } else {
      const { bins, binNs, busy, task, queue } = timeline.overview;
      const at = cpu * bins + Math.min(bins - 1, Math.floor(this.hover / binNs));
      parts.push(`${Math.round(busy[at] / 2.55)} % busy, mostly ${timeline.name(task[at])}, run queue up to ${queue[at]}`);
    }
    this.status.textContent = parts.join("  ·  ");
  }

  click(pane, x, y) {
    if (x < GUTTER) return;
    const near = (pane.marks ?? []).filter((mark) => Math.abs(mark.x - x) < 6 && Math.abs(mark.y - y) < 7);
    near.sort((a, b) => Math.hypot(a.x - x, a.y - y) - Math.hypot(b.x - x, b.y - y));
    if (near.length > 0) return this.select(pane, near[0].decision);
    const row = pane.rowAt(y);
    const stretch = row && pane.timeline.stretchAt(row.cpu, pane.timeOf(x));
    if (!stretch) return;
    this.selectStretch(pane, stretch);
  }

  selectStretch(pane, stretch) {
    this.selected = { pane, cpu: stretch.cpu, from: stretch.from, to: stretch.to };
    if (stretch.task > 1) this.highlight(pane, stretch.task);
    showStretch(this, pane, stretch);
    this.redraw();
  }

  select(pane, decision) {
    const half = (this.to - this.from) / 400;
    this.selected = { pane, cpu: cpuOf(decision), from: decision.time - half, to: decision.time + half };
    showDecision(this, pane, decision);
    this.redraw();
  }

  /** Follows a task; in the other timelines the task of the same name and number. */
  highlight(pane, task) {
    for (const other of this.panes) {
      const own = other === pane ? task : sameTask(pane.timeline, task, other.timeline);
      other.highlight(own);
    }
    this.redraw();
  }

  clear() {
    this.selected = null;
    this.panel.replaceChildren();
    for (const pane of this.panes) pane.highlight(-1);
    this.redraw();
  }

  find(text) {
    this.hits = findIn(this.panes, text);
    this.hit = -1;
    showHits(this, this.hits);
  }

  next(by) {
    const { hits } = this;
    if (!hits || hits.length === 0) return;
    this.hit = (this.hit + by + hits.length) % hits.length;
    hits[this.hit].go(this);
  }

  fail(error) {
    this.status.textContent = `Cannot read a part of the trace: ${error.message}`;
    console.error(error);
  }
}

function sameTask(from, task, timeline) {
  if (task < 2) return -1;
  const { name, pid } = from.tasks;
  return timeline.tasks.name.findIndex((other, at) => at > 1 && other === name[task] && timeline.tasks.pid[at] === pid[task]);
}
