// One timeline on the page: a strip of load, the track of the highlighted task, and a row per CPU.

const GUTTER = 112, STRIP = 34, TRACK = 16;

// Decisions of a class that are drawn in one picture; more of them would cover what they are about.
const DIAMONDS = 300;

const units = [[1e9, "s"], [1e6, "ms"], [1e3, "us"], [1, "ns"]];
function span(ns) {
  const [size, unit] = units.find(([size]) => Math.abs(ns) >= size) ?? units[3];
  return `${+(ns / size).toPrecision(4)} ${unit}`;
}
const instant = (ns) => `${(ns / 1e9).toFixed(9).replace(/(\d{3})(\d{3})(\d{3})$/, "$1 $2 $3")} s`;

class Pane {
  constructor(timeline, element, board) {
    this.timeline = timeline;
    this.board = board;
    this.palette = new Palette(timeline);
    this.highlighted = -1;
    this.path = [];
    this.rowHeight = 0;
    element.innerHTML = `<div class="pane-head"></div><canvas class="strip"></canvas>
      <div class="scroll"><canvas class="rows" tabindex="0"></canvas><div class="spacer"></div></div>`;
    element.querySelector(".pane-head").textContent = timeline.head.title;
    this.strip = element.querySelector(".strip");
    this.scroll = element.querySelector(".scroll");
    this.canvas = element.querySelector(".rows");
    this.spacer = element.querySelector(".spacer");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `Timeline of ${timeline.nrCpus} CPUs: ${timeline.head.title}`);
    this.scroll.addEventListener("scroll", () => board.redraw());
    this.layout(0);
  }

  /** Places a row for each CPU, with space between cores, LLCs and nodes. */
  layout(rowHeight) {
    const { timeline } = this;
    const place = timeline.head.cpus;
    const room = Math.max(220, innerHeight - 250) / this.board.panes.length || 480;
    this.rowHeight = rowHeight || Math.max(1, Math.min(20, Math.floor((room - 40) / Math.max(1, timeline.nrCpus))));
    const smt = new Set(place.core).size < timeline.nrCpus;
    this.rows = [];
    this.labels = [];
    let y = 0, before = -1;
    for (const cpu of timeline.order) {
      const other = (column) => before < 0 || place[column][cpu] !== place[column][before];
      if (other("node")) {
        y += before < 0 ? 2 : 6;
        this.labels.push([y, `node ${place.node[cpu]}`, true]);
      } else if (other("llc")) y += this.rowHeight >= 2 ? 3 : 1;
      else if (smt && other("core") && this.rowHeight >= 5) y += 1;
      if (other("llc")) this.labels.push([y, `LLC ${place.llc[cpu]}`, false]);
      this.rows.push({ cpu, y });
      y += this.rowHeight;
      before = cpu;
    }
    this.rowOf = new Map(this.rows.map((row) => [row.cpu, row]));
    this.height = y + 4;
    this.visible = Math.min(this.height + TRACK, Math.max(120, room));
    this.scroll.style.height = `${this.visible}px`;
    this.spacer.style.height = `${Math.max(0, this.height + TRACK - this.visible)}px`;
    this.measure();
  }

  /** Asks the browser how wide the pane is, which costs a layout: once for each picture. */
  measure() {
    this.width = Math.max(200, this.scroll.clientWidth);
    this.top = this.scroll.scrollTop;
  }

  xOf(time) {
    const { from, to } = this.board;
    return GUTTER + (time - from) / (to - from) * (this.width - GUTTER);
  }

  timeOf(x) {
    const { from, to } = this.board;
    return from + (x - GUTTER) / (this.width - GUTTER) * (to - from);
  }

  yOf(cpu) {
    const row = this.rowOf.get(cpu);
    return row ? TRACK + row.y - this.top + this.rowHeight / 2 : -99;
  }

  rowAt(y) {
    const at = y - TRACK + this.top;
    return this.rows.findLast((row) => row.y <= at && at < row.y + this.rowHeight + 3);
  }

  highlight(task) {
    this.highlighted = task;
    this.palette.refresh(task);
    this.path = task > 1 ? this.timeline.stretchesOf(task) : [];
    this.pathChunks = this.timeline.chunks.filter((chunk) => chunk.data.runs).length;
  }

  /** Loads what the view needs at its level, and draws again when it is there. */
  want(choice) {
    const { timeline, board } = this;
    const count = choice.end - choice.first;
    const missing = [];
    if (choice.wanted && (!timeline.isServed || count <= 12)) {
      for (let c = choice.first; c < choice.end; c++) {
        if (!timeline.isLoaded(timeline.chunks[c]) && timeline.source.has(c, "runs")) missing.push(timeline.load(c));
        timeline.chunks[c].used = ++timeline.uses;
      }
    }
    if (choice.wanted && count <= 64) {
      for (let c = choice.first; c < choice.end; c++) {
        if (timeline.chunks[c].data.summary === undefined) missing.push(timeline.loadSummary(c));
      }
    }
    if (missing.length > 0) Promise.all(missing).then(() => board.redraw(), (error) => board.fail(error));
  }

  draw() {
    const { timeline, board, palette } = this;
    const ratio = devicePixelRatio || 1;
    this.measure();
    const { width, visible: height } = this;
    size(this.canvas, width, height, ratio);
    const context = this.canvas.getContext("2d", { alpha: false });
    context.setTransform(1, 0, 0, 1, 0, 0);
    const style = getComputedStyle(document.documentElement);
    this.ink = style.getPropertyValue("--ink");
    this.faint = style.getPropertyValue("--faint");
    this.page = style.getPropertyValue("--page").trim();
    context.fillStyle = this.page;
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const left = Math.round(GUTTER * ratio), columns = this.canvas.width - left;
    const choice = levelOf(timeline, board.from, board.to, columns);
    this.level = choice.level;
    this.want(choice);
    const image = context.createImageData(columns, this.canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(this.page.slice(at, at + 2), 16));
    pixels.fill(pack(r, g, b));
    const line = new Line(columns);
    const { top } = this;
    for (const row of this.rows) {
      const y = TRACK + row.y - top;
      if (y + this.rowHeight < TRACK || y > height) continue;
      this.drawLine(line, row.cpu, columns, choice);
      this.copy(line, pixels, columns, Math.round(y * ratio), Math.round((y + this.rowHeight) * ratio) - (this.rowHeight > 3 ? 1 : 0));
    }
    context.putImageData(image, left, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawOverlay(context, width, height, choice);
    this.drawTrack(context, width);
    this.drawLabels(context, height);
    this.drawStrip(ratio, style);
  }

  drawLine(line, cpu, columns, choice) {
    const { timeline, board, palette } = this;
    const { from, to } = board;
    line.clear(palette);
    if (choice.level === "exact") {
      line.exact(timeline, cpu, from, to, columns, choice.first, choice.end, palette, this.highlighted);
    } else if (choice.level === "summary") {
      for (let c = choice.first; c < choice.end; c++) {
        const { data, from: start, to: limit } = timeline.chunks[c];
        line.binned(data.summary, cpu * data.summary.bins, start, from, to, columns, palette, limit);
      }
    } else {
      const { overview } = timeline;
      line.binned(overview, cpu * overview.bins, 0, from, to, columns, palette, timeline.duration);
    }
    if (board.colours === "queue") {
      for (let x = 0; x < columns; x++) line.colours[x] = queueColour(line.queue[x], palette);
    }
  }

  /** Copies a line to its height; high rows have the length of the queue along their lower edge. */
  copy(line, pixels, columns, y0, y1) {
    const last = pixels.length / columns;
    const hasEdge = this.board.colours !== "queue" && this.rowHeight >= 8;
    const edge = hasEdge ? y1 - Math.max(2, Math.floor((y1 - y0) / 4)) : y1;
    for (let y = Math.max(0, y0); y < Math.min(last, edge); y++) pixels.set(line.colours, y * columns);
    if (!hasEdge) return;
    const heat = new Uint32Array(columns);
    for (let x = 0; x < columns; x++) heat[x] = line.queue[x] > 1 ? queueColour(line.queue[x], this.palette) : line.colours[x];
    for (let y = Math.max(0, edge); y < Math.min(last, y1); y++) pixels.set(heat, y * columns);
  }

  drawLabels(context, height) {
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "top";
    const { top } = this;
    let below = -99;
    for (const [at, label, isNode] of this.labels) {
      const y = TRACK + at - top;
      if (y < TRACK - 6 || y > height) continue;
      if (isNode) {
        context.fillStyle = this.ink;
        context.fillText(label, 4, y);
        context.fillStyle = this.faint;
        context.fillRect(0, y - 3, GUTTER, 1);
      } else if (y > below + 12) {
        context.fillStyle = this.faint;
        context.fillText(label, 50, y);
        below = y;
      }
    }
    if (this.rowHeight >= 10) {
      context.fillStyle = this.ink;
      context.textAlign = "right";
      for (const row of this.rows) {
        const y = TRACK + row.y - top;
        if (y >= TRACK && y < height) context.fillText(String(row.cpu), GUTTER - 4, y + (this.rowHeight - 11) / 2);
      }
      context.textAlign = "left";
    }
  }

  /** What the highlighted task does: it runs, waits, or sleeps. */
  drawTrack(context, width) {
    context.fillStyle = this.page;
    context.fillRect(0, 0, width, TRACK - 1);
    if (this.highlighted < 2) return;
    context.fillStyle = this.ink;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "top";
    context.fillText(this.timeline.name(this.highlighted).slice(0, 15), 4, 2);
    const { from, to } = this.board;
    const clip = (time) => Math.max(GUTTER, Math.min(width, this.xOf(time)));
    context.fillStyle = "#e08a00";
    for (const chunk of this.timeline.chunks) {
      const wakes = chunk.data.wakes;
      if (!wakes) continue;
      for (let i = 0; i < wakes.count; i++) {
        if (wakes.wakee[i] !== this.highlighted || wakes.time[i] < from || wakes.time[i] - wakes.latency[i] > to) continue;
        const x = clip(wakes.time[i] - wakes.latency[i]);
        context.fillRect(x, 6, Math.max(1, clip(wakes.time[i]) - x), 5);
      }
    }
    let before = null;
    for (const stretch of this.path) {
      if (before && (before.left === 1 || before.left === 2) && stretch.from >= from && before.to <= to) {
        context.fillStyle = "#e08a00";
        context.fillRect(clip(before.to), 6, Math.max(0.5, clip(stretch.from) - clip(before.to)), 5);
      }
      before = stretch;
      if (stretch.to < from || stretch.from > to) continue;
      context.fillStyle = this.palette.css(this.highlighted);
      context.fillRect(clip(stretch.from), 2, Math.max(1, clip(stretch.to) - clip(stretch.from)), TRACK - 5);
    }
  }

  drawOverlay(context, width, height, choice) {
    context.save();
    context.beginPath();
    context.rect(GUTTER, TRACK, width - GUTTER, height - TRACK);
    context.clip();
    if (choice.level === "exact") {
      this.drawStolen(context, choice);
      if (this.rowHeight >= 12) this.drawNames(context, width, choice);
    }
    this.drawPath(context);
    this.drawWakes(context, choice);
    this.marks = [];
    if (choice.level === "exact") this.drawDecisions(context, choice);
    const selected = this.board.selected;
    if (selected && selected.pane === this) {
      const x = this.xOf(selected.from), y = this.yOf(selected.cpu);
      context.strokeStyle = this.ink;
      context.lineWidth = 2;
      context.strokeRect(x - 1, y - this.rowHeight / 2 - 1, Math.max(4, this.xOf(selected.to) - x) + 2, this.rowHeight + 2);
      context.lineWidth = 1;
    }
    const hover = this.board.hover;
    if (hover !== null) {
      context.fillStyle = this.ink;
      context.globalAlpha = 0.6;
      context.fillRect(Math.round(this.xOf(hover)), 0, 1, height);
      context.globalAlpha = 1;
    }
    context.restore();
  }

  /** Time that interrupts took, as a dark line along the upper edge. */
  drawStolen(context, choice) {
    if (this.rowHeight < 4) return;
    context.fillStyle = this.palette.dark ? "#ffffff" : "#000000";
    const { from, to } = this.board;
    for (const row of this.rows) {
      const y = this.yOf(row.cpu) - this.rowHeight / 2;
      if (y < TRACK - this.rowHeight || y > this.visible) continue;
      let edge = -1;
      for (let c = choice.first; c < choice.end; c++) {
        const runs = this.timeline.chunks[c].data.runs;
        if (!runs || row.cpu >= runs.nrCpus) continue;
        const end = runs.stolenOffsets[row.cpu + 1];
        let i = Math.max(runs.stolenOffsets[row.cpu], lastBefore(runs.stolenFrom, runs.stolenOffsets[row.cpu], end, from));
        for (; i < end && runs.stolenFrom[i] < to; i++) {
          const x = Math.max(edge, this.xOf(runs.stolenFrom[i])), stop = this.xOf(runs.stolenFrom[i] + runs.stolenFor[i]);
          if (stop <= edge) continue;
          edge = Math.max(stop, x + 0.5);
          context.fillRect(x, y, edge - x, Math.min(3, this.rowHeight / 3));
        }
      }
    }
  }

  drawNames(context, width, choice) {
    context.font = `${Math.min(12, this.rowHeight - 3)}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    const { from, to } = this.board;
    const least = (to - from) / (width - GUTTER) * 34;
    for (const row of this.rows) {
      const y = this.yOf(row.cpu);
      if (y < TRACK || y > this.visible) continue;
      for (let c = choice.first; c < choice.end; c++) {
        const chunk = this.timeline.chunks[c], runs = chunk.data.runs;
        if (!runs || row.cpu >= runs.nrCpus) continue;
        const begin = runs.offsets[row.cpu], end = runs.offsets[row.cpu + 1];
        for (let i = Math.max(begin, lastBefore(runs.starts, begin, end, from)); i < end && runs.starts[i] < to; i++) {
          const task = runs.tasks[i];
          if (task === 0) continue;
          const start = Math.max(from, runs.starts[i]), stop = Math.min(to, i + 1 < end ? runs.starts[i + 1] : chunk.to);
          if (stop - start < least) continue;
          const { red, green, blue } = this.palette;
          const bright = red[task] * 0.3 + green[task] * 0.59 + blue[task] * 0.11 > 140;
          context.fillStyle = bright ? "#111" : "#fff";
          const room = this.xOf(stop) - this.xOf(start) - 6;
          context.fillText(this.timeline.name(task).slice(0, Math.floor(room / 6)), this.xOf(start) + 3, y);
        }
      }
    }
  }

  /** The highlighted task from CPU to CPU. */
  drawPath(context) {
    if (this.highlighted < 2) return;
    const { from, to } = this.board;
    const path = this.path;
    let i = 0;
    while (i < path.length && path[i].to < from) i++;
    const first = Math.max(0, i - 1);
    while (i < path.length && path[i].from <= to) i++;
    if (i - first > 4000) return;
    const colour = this.palette.css(this.highlighted);
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.globalAlpha = 0.75;
    context.beginPath();
    for (let k = first; k < Math.min(path.length, i + 1); k++) {
      const here = path[k], y = this.yOf(here.cpu), x = this.xOf(here.from);
      if (this.rowHeight < 5) context.fillRect(x, y - 2, Math.max(1.5, this.xOf(here.to) - x), 4);
      if (k > first && path[k - 1].cpu !== here.cpu) {
        context.moveTo(this.xOf(path[k - 1].to), this.yOf(path[k - 1].cpu));
        context.lineTo(x, y);
      }
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  /** Arrows from waker to wakee: all where they are few, else those of the highlighted task. */
  drawWakes(context, choice) {
    const { from, to } = this.board;
    const found = [];
    const limit = 500;
    for (let c = choice.first; c < Math.min(choice.end + 1, this.timeline.chunks.length); c++) {
      const wakes = this.timeline.chunks[c].data.wakes;
      if (!wakes) continue;
      for (let i = Math.max(0, lastBefore(wakes.time, 0, wakes.count, from)); i < wakes.count; i++) {
        if (wakes.time[i] - wakes.latency[i] > to) {
          if (wakes.time[i] > to + 1e8) break;
          continue;
        }
        const own = wakes.wakee[i] === this.highlighted || (this.highlighted > 1 && wakes.waker[i] === this.highlighted);
        if (this.highlighted > 1 && !own) continue;
        found.push([wakes, i]);
        if (found.length > limit) return;
      }
    }
    context.strokeStyle = context.fillStyle = this.palette.dark ? "#9fd0ff" : "#1450a0";
    context.globalAlpha = 0.8;
    for (const [wakes, i] of found) {
      const x0 = this.xOf(wakes.time[i] - wakes.latency[i]), y0 = this.yOf(wakes.wakerCpu[i]);
      const x1 = this.xOf(wakes.time[i]), y1 = this.yOf(wakes.cpu[i]);
      context.beginPath();
      context.moveTo(x0, y0);
      context.lineTo(x1, y1);
      context.stroke();
      const angle = Math.atan2(y1 - y0, x1 - x0);
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x1 - 6 * Math.cos(angle - 0.4), y1 - 6 * Math.sin(angle - 0.4));
      context.lineTo(x1 - 6 * Math.cos(angle + 0.4), y1 - 6 * Math.sin(angle + 0.4));
      context.fill();
    }
    context.globalAlpha = 1;
  }

  /** A diamond for each decision, where they are few enough to be told apart. */
  drawDecisions(context, choice) {
    const { from, to } = this.board;
    const verdicts = { "audit.differs": "#e03131", "audit.undecided": "#868e96", "audit.agrees": "#2f9e44" };
    const colours = { placements: "#d02090", preemptions: "#c06000", picks: "#308030" };
    for (const kind of DECISIONS) {
      let count = 0;
      const found = [];
      for (let c = choice.first; c < choice.end && count < DIAMONDS; c++) {
        const chunk = this.timeline.chunks[c], data = chunk.data[kind];
        if (!data) continue;
        for (let i = lastBefore(data.time, 0, data.count, from) + 1; i < data.count && data.time[i] <= to; i++) {
          if (++count > DIAMONDS) break;
          if (this.highlighted > 1 && data.task[i] - 1 !== this.highlighted) continue;
          found.push([chunk, i]);
        }
      }
      if (count > DIAMONDS && this.highlighted < 2) continue;
      for (const [chunk, i] of found) {
        const decision = decisionAt(this.timeline, chunk, kind, i);
        const x = this.xOf(decision.time), y = this.yOf(cpuOf(decision)) + (kind === "picks" ? this.rowHeight / 4 : 0);
        if (y < 0) continue;
        context.fillStyle = verdicts[decision.kind] ?? colours[kind];
        this.marks.push({ x, y, decision });
        context.beginPath();
        context.moveTo(x, y - 4);
        context.lineTo(x + 3.5, y);
        context.lineTo(x, y + 4);
        context.lineTo(x - 3.5, y);
        context.fill();
      }
    }
  }

  /** Over the whole trace: the share of busy CPUs, the longest queue, and which part the view shows. */
  drawStrip(ratio, style) {
    const { timeline, board } = this;
    const width = this.width;
    size(this.strip, width, STRIP, ratio);
    const context = this.strip.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, STRIP);
    const { bins, busy } = timeline.overview;
    if (!this.load) {
      this.load = new Float64Array(bins);
      for (let cpu = 0; cpu < timeline.nrCpus; cpu++) {
        for (let bin = 0; bin < bins; bin++) this.load[bin] += busy[cpu * bins + bin];
      }
    }
    const room = width - GUTTER;
    const xAt = (time) => GUTTER + time / board.duration * room;
    context.fillStyle = style.getPropertyValue("--accent");
    const covered = timeline.overview.binNs * bins / board.duration * room;
    for (let x = 0; x < covered; x++) {
      const a = Math.floor(x / covered * bins), b = Math.max(a + 1, Math.floor((x + 1) / covered * bins));
      let sum = 0;
      for (let bin = a; bin < b; bin++) sum += this.load[bin];
      const share = sum / (255 * timeline.nrCpus * (b - a));
      context.fillRect(GUTTER + x, STRIP - 2 - share * (STRIP - 4), 1, share * (STRIP - 4));
    }
    context.strokeStyle = this.ink;
    context.strokeRect(Math.max(GUTTER, xAt(board.from)) + 0.5, 0.5, Math.max(2, xAt(board.to) - xAt(board.from)) - 1, STRIP - 1);
    context.fillStyle = this.ink;
    context.font = "11px system-ui, sans-serif";
    context.fillText("busy CPUs", 4, 14);
    context.fillText(`${span(board.to - board.from)} wide`, 4, 28);
  }
}

/** Gives a canvas as many pixels as it covers. */
function size(canvas, width, height, ratio) {
  const w = Math.round(width * ratio), h = Math.round(height * ratio);
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}
