// Draws rows of CPUs into pixels. A row is computed once as a line of colours and copied to its height.

const isDark = () => document.documentElement.dataset.theme === "dark" ||
  (document.documentElement.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);

const pack = (r, g, b) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;

function hsl(hue, saturation, lightness) {
  const a = saturation * Math.min(lightness, 1 - lightness);
  const channel = (n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (lightness - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}

function hash(text) {
  let value = 2166136261;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16777619);
  return value >>> 0;
}

/** Colours of tasks: a hue for each name, a shade for each task of that name. */
class Palette {
  constructor(timeline) {
    this.timeline = timeline;
    this.refresh(-1);
  }
  refresh(highlighted) {
    const { name, pid } = this.timeline.tasks;
    const dark = this.dark = isDark();
    this.background = dark ? [24, 26, 31] : [246, 247, 249];
    this.red = new Uint8Array(name.length);
    this.green = new Uint8Array(name.length);
    this.blue = new Uint8Array(name.length);
    for (let task = 0; task < name.length; task++) {
      let colour;
      if (task === 0) colour = this.background;
      else if (task === 1) colour = dark ? [90, 90, 90] : [170, 170, 170];
      else {
        // Numbers at the end are of one program: kworker/3:1, stream-2.
        const hue = hash(name[task].replace(/[\d:/]+$/, "")) % 360;
        const shade = ((pid[task] * 2654435761) >>> 0) / 2 ** 32;
        const other = highlighted > 1 && task !== highlighted;
        if (other) colour = hsl(hue, 0.12, dark ? 0.3 + 0.05 * shade : 0.78 - 0.06 * shade);
        else if (task === highlighted) colour = dark ? [255, 214, 10] : [214, 40, 20];
        else colour = hsl((hue + 50 * (shade - 0.5) + 360) % 360, 0.55, dark ? 0.46 + 0.16 * shade : 0.44 + 0.16 * shade);
      }
      [this.red[task], this.green[task], this.blue[task]] = colour;
    }
  }
  mix(task, share) {
    const [r, g, b] = this.background;
    return pack(r + (this.red[task] - r) * share, g + (this.green[task] - g) * share, b + (this.blue[task] - b) * share);
  }
  css(task) {
    return `rgb(${this.red[task]},${this.green[task]},${this.blue[task]})`;
  }
}

/** Which zoom level a view of a span takes, and what it must load for it. */
function levelOf(timeline, from, to, width) {
  const [first, end] = timeline.span(from, to);
  let stretches = 0, loaded = true, summaries = true;
  for (let c = first; c < end; c++) {
    const chunk = timeline.chunks[c];
    const share = Math.min(1, (Math.min(to, chunk.to) - Math.max(from, chunk.from)) / (chunk.to - chunk.from));
    stretches += chunk.stretches * Math.max(0, share);
    loaded &&= Boolean(chunk.data.runs);
    summaries &&= Boolean(chunk.data.summary);
  }
  const fits = stretches <= 3 * width * timeline.nrCpus;
  const wanted = fits || (to - from) / timeline.overview.binNs < width / 3;
  if (fits && loaded) return { level: "exact", first, end, wanted: false };
  const coarse = (to - from) / timeline.overview.binNs < width / 3;
  if (coarse && summaries) return { level: "summary", first, end, wanted: fits };
  return { level: "overview", first, end, wanted };
}

/** Accumulates stretches into the pixels of one row. */
class Line {
  constructor(width) {
    this.colours = new Uint32Array(width);
    this.queue = new Uint16Array(width);
  }
  clear(palette) {
    this.colours.fill(pack(...palette.background));
    this.queue.fill(0);
  }

  exact(timeline, cpu, from, to, width, first, end, palette, highlighted) {
    const scale = width / (to - from);
    let pixel = -1, busy = 0, longest = 0, task = 0;
    const colours = this.colours;
    const settle = () => {
      if (pixel >= 0 && pixel < width && busy > 0) {
        colours[pixel] = palette.mix(task, Math.min(1, 0.25 + 0.75 * busy * scale));
      }
      busy = longest = 0;
    };
    for (let c = first; c < end; c++) {
      const chunk = timeline.chunks[c], runs = chunk.data.runs;
      if (!runs || cpu >= runs.nrCpus) continue;
      const begin = runs.offsets[cpu], stop = runs.offsets[cpu + 1];
      let i = Math.max(begin, lastBefore(runs.starts, begin, stop, from));
      for (; i < stop && runs.starts[i] < to; i++) {
        const who = runs.tasks[i];
        if (who === 0) continue;
        const start = Math.max(from, runs.starts[i]);
        const finish = Math.min(to, i + 1 < stop ? runs.starts[i + 1] : chunk.to);
        if (finish < start) continue;
        const x0 = Math.floor((start - from) * scale), x1 = Math.floor((finish - from) * scale);
        const weight = who === highlighted ? 1e18 : 0;
        if (x0 !== pixel) {
          settle();
          pixel = x0;
        }
        if (x1 === x0) {
          busy += finish - start;
          if (finish - start + weight >= longest) { longest = finish - start + weight; task = who; }
          continue;
        }
        const head = (x0 + 1) / scale + from - start;
        busy += head;
        if (head + weight >= longest) task = who;
        settle();
        colours.fill(palette.mix(who, 1), x0 + 1, Math.min(width, x1));
        pixel = x1;
        busy = longest = finish - from - x1 / scale;
        longest += weight;
        task = who;
      }
      this.queues(runs, cpu, from, to, scale, chunk);
    }
    settle();
  }

  queues(runs, cpu, from, to, scale, chunk) {
    const begin = runs.queueOffsets[cpu], stop = runs.queueOffsets[cpu + 1];
    for (let i = Math.max(begin, lastBefore(runs.queueTimes, begin, stop, from)); i < stop; i++) {
      const start = runs.queueTimes[i];
      if (start >= to) break;
      const length = runs.queues[i];
      if (length === 0) continue;
      const finish = i + 1 < stop ? runs.queueTimes[i + 1] : chunk.to;
      const x0 = Math.max(0, Math.floor((start - from) * scale));
      const x1 = Math.min(this.queue.length - 1, Math.floor((finish - from) * scale));
      for (let x = x0; x <= x1; x++) if (this.queue[x] < length) this.queue[x] = length;
    }
  }

  /** Cells of a coarser level that begin at `start`. */
  binned(level, nrBinsBefore, start, from, to, width, palette, limit) {
    const perPixel = (to - from) / width;
    const x0 = Math.max(0, Math.floor((start - from) / perPixel));
    const x1 = Math.min(width, Math.ceil((Math.min(limit, start + level.bins * level.binNs) - from) / perPixel));
    for (let x = x0; x < x1; x++) {
      const a = Math.max(0, Math.floor((from + x * perPixel - start) / level.binNs));
      const b = Math.min(level.bins, Math.max(a + 1, Math.floor((from + (x + 1) * perPixel - start) / level.binNs)));
      let sum = 0, most = -1, task = 0, queue = 0;
      for (let bin = a; bin < b; bin++) {
        const at = nrBinsBefore + bin;
        sum += level.busy[at];
        if (level.busy[at] > most) { most = level.busy[at]; task = level.task[at]; }
        if (level.queue[at] > queue) queue = level.queue[at];
      }
      if (sum > 0) this.colours[x] = palette.mix(task, Math.min(1, 0.25 + 0.75 * sum / (255 * (b - a))));
      this.queue[x] = queue;
    }
  }
}

/** A colour for the length of a run queue: none, one, more. */
function queueColour(length, palette) {
  if (length === 0) return pack(...palette.background);
  if (length === 1) return palette.dark ? pack(46, 82, 62) : pack(196, 226, 208);
  const heat = Math.min(1, Math.log2(length) / 5);
  return palette.dark ? pack(150 + 105 * heat, 120 * (1 - heat) + 30, 30) : pack(245 - 40 * heat, 175 * (1 - heat) + 20, 40 * (1 - heat));
}
