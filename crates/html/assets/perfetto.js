// Writes what the page holds as a Perfetto trace: switches and wake-ups as ftrace events, decisions as points.
// Field numbers are those of crates/trace/src/perfetto.rs.

class Proto {
  constructor() {
    this.bytes = new Uint8Array(1 << 12);
    this.length = 0;
  }
  room(count) {
    if (this.length + count <= this.bytes.length) return;
    const bytes = new Uint8Array(Math.max(this.bytes.length * 2, this.length + count));
    bytes.set(this.bytes.subarray(0, this.length));
    this.bytes = bytes;
  }
  varint(number) {
    this.room(10);
    if (number < 0) {
      let big = BigInt.asUintN(64, BigInt(Math.round(number)));
      while (big >= 128n) { this.bytes[this.length++] = Number(big & 127n) | 128; big >>= 7n; }
      this.bytes[this.length++] = Number(big);
      return;
    }
    while (number >= 128) { this.bytes[this.length++] = number % 128 | 128; number = Math.floor(number / 128); }
    this.bytes[this.length++] = number;
  }
  uint(field, number) { this.varint(field * 8); this.varint(number); }
  /** An instant: nanoseconds above 2^53 need all their digits. */
  time(field, big) {
    this.varint(field * 8);
    this.room(10);
    while (big >= 128n) { this.bytes[this.length++] = Number(big & 127n) | 128; big >>= 7n; }
    this.bytes[this.length++] = Number(big);
  }
  raw(field, bytes) {
    this.varint(field * 8 + 2);
    this.varint(bytes.length);
    this.room(bytes.length);
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
  }
  text(field, text) { this.raw(field, Proto.encoder.encode(text)); }
  message(field, fill) {
    const inner = new Proto();
    inner.bytes = new Uint8Array(64);
    fill(inner);
    this.raw(field, inner.bytes.subarray(0, inner.length));
  }
  done() { return this.bytes.slice(0, this.length); }
}
Proto.encoder = new TextEncoder();

// As sched_switch records it: how a task left, by the number of LEFT.
const STATES = [0, 0, 0x100, 1, 2, 0x10, 0x80];

function perfettoOf(timeline) {
  const parts = [];
  const start = BigInt(timeline.head.start_ns);
  const at = (time) => start + BigInt(Math.round(time));
  const { name, pid } = timeline.tasks;
  const comm = (task, cpu) => (task === 0 ? `swapper/${cpu}` : name[task]);
  const pids = (task) => Math.max(0, pid[task]);
  const packet = (fill) => {
    const out = new Proto();
    out.message(1, (message) => { message.uint(10, 1); fill(message); });
    parts.push(out.done());
  };
  packet((message) => {
    message.uint(13, 1);
    message.message(6, (snapshot) => {
      for (const clock of [3, 6]) snapshot.message(1, (reading) => { reading.uint(1, clock); reading.uint(2, 0); });
      snapshot.uint(2, 6);
    });
  });
  const described = new Set();
  const track = (task, cpu) => (task > 1 ? 2 ** 32 + pid[task] : 2 * 2 ** 32 + cpu);
  const describe = (task, cpu) => {
    const uuid = track(task, cpu);
    if (described.has(uuid)) return uuid;
    described.add(uuid);
    packet((message) => message.message(60, (descriptor) => {
      descriptor.uint(1, uuid);
      if (task > 1) descriptor.message(4, (thread) => { thread.uint(1, pid[task]); thread.uint(2, pid[task]); });
      else descriptor.text(2, `CPU ${cpu} scheduler`);
    }));
    return uuid;
  };
  const begun = Array.from({ length: timeline.nrCpus }, () => []);
  for (const { data: { wakes } } of timeline.chunks) {
    for (let i = 0; wakes && i < wakes.count; i++) begun[wakes.wakerCpu[i]]?.push([wakes, i]);
  }
  for (let cpu = 0; cpu < timeline.nrCpus; cpu++) {
    const stretches = stretchesOn(timeline, cpu);
    const events = [];
    for (let at = 1; at < stretches.length; at++) {
      const last = stretches[at - 1], next = stretches[at];
      events.push([next.from, 2 * at, (event) => {
        event.uint(2, pids(last.task));
        event.message(4, (fields) => {
          fields.text(1, comm(last.task, cpu)); fields.uint(2, pids(last.task)); fields.uint(3, 120);
          fields.uint(4, STATES[last.left]);
          fields.text(5, comm(next.task, cpu)); fields.uint(6, pids(next.task)); fields.uint(7, 120);
        });
      }]);
    }
    const starts = stretches.map((stretch) => stretch.from);
    for (const [wakes, i] of begun[cpu]) {
      const time = wakes.time[i] - wakes.latency[i];
      // Clocks are coarse: of several switches at one instant the waker's own stretch is the place.
      let place = Math.max(0, lastBefore(starts, 0, starts.length, time));
      if (!(wakes.flags[i] & 1)) {
        for (let k = place; k >= 0 && (k === place || starts[k + 1] === time); k--) {
          if (stretches[k].task === wakes.waker[i]) { place = k; break; }
        }
      }
      const task = wakes.wakee[i];
      events.push([time, 2 * place + 1, (event) => {
        event.uint(2, pids(stretches[place]?.task ?? wakes.waker[i]));
        event.message(wakes.flags[i] & 2 ? 114 : 20, (fields) => {
          fields.text(1, name[task]); fields.uint(2, pids(task)); fields.uint(3, 120); fields.uint(5, wakes.cpu[i]);
        });
      }]);
    }
    events.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    for (let first = 0; first < events.length; first += 1000) {
      packet((message) => message.message(1, (bundle) => {
        bundle.uint(1, cpu);
        for (const [time, , fill] of events.slice(first, first + 1000)) {
          bundle.message(2, (event) => { event.time(1, at(time)); fill(event); });
        }
      }));
    }
  }
  for (const chunk of timeline.chunks) {
    for (const kind of DECISIONS) {
      const data = chunk.data[kind];
      for (let i = 0; data && i < data.count; i++) {
        const decision = decisionAt(timeline, chunk, kind, i);
        const uuid = describe(decision.task, decision.cpu);
        packet((message) => {
          message.time(8, at(decision.time));
          message.message(11, (event) => {
            event.uint(9, 3); event.uint(11, uuid); event.text(22, decision.kind); event.text(23, decision.reason);
            for (const [key, number] of decision.numbers) event.message(4, (note) => { note.text(10, key); note.uint(4, number); });
            for (const [key, text] of decision.texts) event.message(4, (note) => { note.text(10, key); note.text(6, text); });
          });
        });
      }
    }
  }
  return new Blob(parts, { type: "application/octet-stream" });
}

/** All stretches of a CPU; what runs on from one chunk to the next is one. */
function stretchesOn(timeline, cpu) {
  const found = [];
  for (const { data: { runs } } of timeline.chunks) {
    if (!runs || cpu >= runs.nrCpus) continue;
    for (let i = runs.offsets[cpu]; i < runs.offsets[cpu + 1]; i++) {
      const last = found[found.length - 1];
      if (last && last.left === 0 && last.task === runs.tasks[i]) last.left = runs.left[i];
      else found.push({ task: runs.tasks[i], from: runs.starts[i], left: runs.left[i] });
    }
  }
  return found;
}

async function savePerfetto(panes) {
  for (const [index, pane] of panes.entries()) {
    for (const chunk of pane.timeline.chunks) await pane.timeline.load(chunk.index);
    const url = URL.createObjectURL(perfettoOf(pane.timeline));
    const anchor = document.createElement("a");
    anchor.href = url;
    anchor.download = panes.length > 1 ? `schedlab-${"ab"[index] ?? index + 1}.pftrace` : "schedlab.pftrace";
    anchor.click();
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  }
}
