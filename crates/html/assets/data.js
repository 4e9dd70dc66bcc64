// Reads the columns of a timeline: deflated base64 in the page, or ranges of a file on a server.
// The layout of every section is described in crates/timeline/src.

const CLASSES = ["summary", "runs", "wakes", "placements", "candidates", "preemptions", "picks"];
const DECISIONS = ["placements", "preemptions", "picks"];

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Reads LEB128 numbers. Numbers above 2^53 lose their lowest digits. */
class Columns {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  get() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 0x80) return byte;
    let number = byte & 0x7f, factor = 128;
    do {
      byte = bytes[this.at++];
      number += (byte & 0x7f) * factor;
      factor *= 128;
    } while (byte >= 0x80);
    return number;
  }
  fill(array) {
    for (let i = 0; i < array.length; i++) array[i] = this.get();
    return array;
  }
  signed(count) {
    const array = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      const zigzag = this.get();
      array[i] = zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2;
    }
    return array;
  }
  times(count, from) {
    const array = new Float64Array(count);
    let time = from;
    for (let i = 0; i < count; i++) array[i] = time += this.get();
    return array;
  }
  /** One column for each CPU, joined; `offsets` says where each begins. */
  perCpu(nrCpus) {
    const offsets = new Uint32Array(nrCpus + 1);
    for (let cpu = 0; cpu < nrCpus; cpu++) offsets[cpu + 1] = offsets[cpu] + this.get();
    return offsets;
  }
  timesPerCpu(offsets, from) {
    const array = new Float64Array(offsets[offsets.length - 1]);
    for (let cpu = 0; cpu + 1 < offsets.length; cpu++) {
      let time = from;
      for (let i = offsets[cpu]; i < offsets[cpu + 1]; i++) array[i] = time += this.get();
    }
    return array;
  }
}

function ends(counts) {
  const offsets = new Uint32Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) offsets[i + 1] = offsets[i] + counts[i];
  return offsets;
}

const DECODE = {
  summary(columns, _head, nrCpus) {
    if (columns.bytes.length === 0) return null;
    const bins = columns.get(), binNs = columns.get();
    return cells(columns, nrCpus, bins, binNs);
  },
  runs(columns, chunk) {
    const nrCpus = columns.get();
    const offsets = columns.perCpu(nrCpus);
    const total = offsets[nrCpus];
    const starts = columns.timesPerCpu(offsets, chunk.from);
    const tasks = columns.fill(new Int32Array(total));
    const left = columns.fill(new Uint8Array(total));
    const queueOffsets = columns.perCpu(nrCpus);
    const queueTimes = columns.timesPerCpu(queueOffsets, chunk.from);
    const queues = columns.fill(new Uint16Array(queueTimes.length));
    const stolenOffsets = columns.perCpu(nrCpus);
    const stolenFrom = columns.timesPerCpu(stolenOffsets, chunk.from);
    const stolenFor = columns.fill(new Float64Array(stolenFrom.length));
    const stolenBy = columns.fill(new Uint32Array(stolenFrom.length));
    const nrMoves = columns.get();
    const moves = {
      time: columns.times(nrMoves, chunk.from),
      task: columns.fill(new Int32Array(nrMoves)),
      from: columns.fill(new Uint16Array(nrMoves)),
      to: columns.fill(new Uint16Array(nrMoves)),
    };
    const nrMarks = columns.get();
    const marks = {
      time: columns.times(nrMarks, chunk.from),
      task: columns.fill(new Int32Array(nrMarks)),
      label: columns.fill(new Uint32Array(nrMarks)),
      value: columns.signed(nrMarks),
    };
    return { nrCpus, offsets, starts, tasks, left, queueOffsets, queueTimes, queues, stolenOffsets, stolenFrom, stolenFor,
      stolenBy, moves, marks };
  },
  wakes(columns, chunk) {
    const count = columns.get();
    const time = columns.times(count, chunk.from);
    const latency = columns.fill(new Float64Array(count));
    const waker = columns.fill(new Int32Array(count));
    const wakerCpu = columns.fill(new Uint16Array(count));
    const wakee = columns.fill(new Int32Array(count));
    const cpu = columns.fill(new Uint16Array(count));
    const flags = columns.fill(new Uint8Array(count));
    return { count, time, latency, waker, wakerCpu, wakee, cpu, flags };
  },
  placements: decisions,
  preemptions: decisions,
  picks: decisions,
  candidates(columns, chunk) {
    const placements = chunk.data.placements;
    const count = placements ? placements.count : 0;
    const offsets = ends(columns.fill(new Uint32Array(count)));
    const total = offsets[count];
    return { offsets, cpu: columns.fill(new Uint16Array(total)), refused: columns.fill(new Uint32Array(total)) };
  },
};

function decisions(columns, chunk) {
  const count = columns.get();
  const time = columns.times(count, chunk.from);
  const cpu = columns.fill(new Uint16Array(count));
  const kind = columns.fill(new Uint32Array(count));
  const reason = columns.fill(new Uint32Array(count));
  const task = columns.fill(new Int32Array(count));
  const numberOffsets = ends(columns.fill(new Uint32Array(count)));
  const numberNames = columns.fill(new Uint32Array(numberOffsets[count]));
  const numbers = columns.signed(numberOffsets[count]);
  const textOffsets = ends(columns.fill(new Uint32Array(count)));
  const textNames = columns.fill(new Uint32Array(textOffsets[count]));
  const texts = columns.fill(new Uint32Array(textOffsets[count]));
  return { count, time, cpu, kind, reason, task, numberOffsets, numberNames, numbers, textOffsets, textNames, texts };
}

function cells(columns, nrCpus, bins, binNs) {
  const total = nrCpus * bins;
  return {
    bins, binNs,
    busy: columns.fill(new Uint8Array(total)),
    task: columns.fill(new Int32Array(total)),
    queue: columns.fill(new Uint16Array(total)),
  };
}

/** Where sections come from when they stand in the page. */
class Embedded {
  constructor(index) {
    this.index = index;
  }
  has(chunk, kind) {
    return document.getElementById(`t${this.index}-${chunk}-${kind}`) !== null;
  }
  async section(chunk, kind) {
    const element = document.getElementById(`t${this.index}-${chunk}-${kind}`);
    const bytes = await inflate(bytesOfBase64(element.textContent));
    element.remove();
    return bytes;
  }
}

/** Where sections come from when a server has them: `places` holds [offset, length] by chunk and class. */
class Served {
  constructor(head) {
    this.places = head.places;
  }
  has(chunk, kind) {
    const place = this.places[chunk][CLASSES.indexOf(kind)];
    return place[1] > 0;
  }
  async section(chunk, kind) {
    const [offset, length] = this.places[chunk][CLASSES.indexOf(kind)];
    const headers = { Range: `bytes=${offset}-${offset + length - 1}` };
    const answer = await fetch("data", { headers });
    if (!answer.ok) throw new Error(`the server answers ${answer.status}; does \`schedlab view --serve\` still run?`);
    return inflate(new Uint8Array(await answer.arrayBuffer()));
  }
}

/** A trace: its head, one coarse zoom level, and chunks whose sections are decoded when they are asked for. */
class Timeline {
  constructor(head, overviewBytes, source) {
    this.head = head;
    this.source = source;
    this.duration = head.duration;
    this.nrCpus = head.cpus.node.length;
    this.tasks = head.tasks;
    this.names = head.names;
    this.overview = cells(new Columns(overviewBytes), this.nrCpus, head.bins, head.bin_ns);
    this.chunks = head.chunks.map((chunk, index) => ({ ...chunk, index, data: {}, coming: null, used: 0 }));
    this.isServed = source instanceof Served;
    this.uses = 0;
    const place = head.cpus;
    this.order = Array.from({ length: this.nrCpus }, (_, cpu) => cpu).sort((a, b) =>
      place.node[a] - place.node[b] || place.llc[a] - place.llc[b] || place.core[a] - place.core[b] || a - b);
  }

  /** Numbers of the first chunk and of the one behind the last that overlap a span. */
  span(from, to) {
    const chunks = this.chunks;
    let low = 0, high = chunks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (chunks[middle].to <= from) low = middle + 1; else high = middle;
    }
    let end = low;
    while (end < chunks.length && chunks[end].from <= to) end++;
    return [low, end];
  }

  isLoaded(chunk) {
    return chunk.data.runs !== undefined;
  }

  /** Decodes all sections of a chunk, once. */
  load(index) {
    const chunk = this.chunks[index];
    chunk.used = ++this.uses;
    chunk.coming ??= (async () => {
      for (const kind of CLASSES) {
        if (kind !== "summary") await this.decode(chunk, kind);
      }
      if (this.isServed) this.forget();
    })();
    return chunk.coming;
  }

  loadSummary(index) {
    const chunk = this.chunks[index];
    chunk.summaryComing ??= this.decode(chunk, "summary");
    return chunk.summaryComing;
  }

  async decode(chunk, kind) {
    if (!this.source.has(chunk.index, kind)) {
      chunk.data[kind] = null;
      return;
    }
    const bytes = await this.source.section(chunk.index, kind);
    chunk.data[kind] = DECODE[kind](new Columns(bytes), chunk, this.nrCpus);
  }

  /** Lets go of the chunks that were not looked at for longest. */
  forget() {
    const loaded = this.chunks.filter((chunk) => chunk.data.runs);
    loaded.sort((a, b) => b.used - a.used);
    for (const chunk of loaded.slice(24)) {
      chunk.data = { summary: chunk.data.summary };
      chunk.coming = null;
    }
  }

  name(task) {
    if (task < 2) return this.tasks.name[task];
    return `${this.tasks.name[task]}-${this.tasks.pid[task]}`;
  }

  /** The stretch of a CPU at an instant, if its chunk is loaded. */
  stretchAt(cpu, time) {
    const [first, end] = this.span(time, time);
    for (let c = end - 1; c >= first; c--) {
      const chunk = this.chunks[c], runs = chunk.data.runs;
      if (!runs || cpu >= runs.nrCpus || time < chunk.from) continue;
      const at = lastBefore(runs.starts, runs.offsets[cpu], runs.offsets[cpu + 1], time);
      if (at < runs.offsets[cpu]) return null;
      const to = at + 1 < runs.offsets[cpu + 1] ? runs.starts[at + 1] : chunk.to;
      return { cpu, task: runs.tasks[at], from: runs.starts[at], to, left: runs.left[at], chunk, at };
    }
    return null;
  }

  queueAt(cpu, time) {
    const [first, end] = this.span(time, time);
    for (let c = end - 1; c >= first; c--) {
      const runs = this.chunks[c].data.runs;
      if (!runs || cpu >= runs.nrCpus || time < this.chunks[c].from) continue;
      const at = lastBefore(runs.queueTimes, runs.queueOffsets[cpu], runs.queueOffsets[cpu + 1], time);
      return at < runs.queueOffsets[cpu] ? 0 : runs.queues[at];
    }
    return 0;
  }

  /** Every stretch of a task in the chunks that are loaded, in order of time. */
  stretchesOf(task) {
    const found = [];
    for (const chunk of this.chunks) {
      const runs = chunk.data.runs;
      if (!runs) continue;
      const begin = found.length;
      for (let cpu = 0; cpu < runs.nrCpus; cpu++) {
        for (let i = runs.offsets[cpu]; i < runs.offsets[cpu + 1]; i++) {
          if (runs.tasks[i] !== task) continue;
          const to = i + 1 < runs.offsets[cpu + 1] ? runs.starts[i + 1] : chunk.to;
          found.push({ cpu, task, from: runs.starts[i], to, left: runs.left[i], chunk, at: i });
        }
      }
      const own = found.splice(begin).sort((a, b) => a.from - b.from);
      for (const stretch of own) found.push(stretch);
    }
    return found;
  }
}

/** The last index in [begin, end) whose value is not above `time`; begin - 1 if there is none. */
function lastBefore(times, begin, end, time) {
  let low = begin, high = end;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1; else high = middle;
  }
  return low - 1;
}

/** One decision as plain values. */
function decisionAt(timeline, chunk, kind, at) {
  const data = chunk.data[kind];
  const names = timeline.names;
  const decision = {
    chunk, class: kind, at,
    time: data.time[at], cpu: data.cpu[at], kind: names[data.kind[at]], reason: names[data.reason[at]],
    task: data.task[at] - 1, numbers: [], texts: [], candidates: [],
  };
  for (let i = data.numberOffsets[at]; i < data.numberOffsets[at + 1]; i++) {
    decision.numbers.push([names[data.numberNames[i]], data.numbers[i]]);
  }
  for (let i = data.textOffsets[at]; i < data.textOffsets[at + 1]; i++) {
    decision.texts.push([names[data.textNames[i]], names[data.texts[i]]]);
  }
  const candidates = kind === "placements" && chunk.data.candidates;
  if (candidates) {
    for (let i = candidates.offsets[at]; i < candidates.offsets[at + 1]; i++) {
      const refused = candidates.refused[i];
      decision.candidates.push([candidates.cpu[i], refused ? names[refused - 1] : ""]);
    }
  }
  return decision;
}

/** The CPU on whose row a decision is shown: the one it chose, or the one that decided. */
function cpuOf(decision) {
  const chosen = decision.numbers.find(([name]) => name === "cpu");
  return chosen ? chosen[1] : decision.cpu;
}
