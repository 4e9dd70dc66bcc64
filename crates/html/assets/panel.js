// The panel of details, and the search.

function element(name, text, ...children) {
  const node = document.createElement(name);
  if (text !== undefined && text !== null) node.textContent = text;
  node.append(...children);
  return node;
}

function link(text, act) {
  const node = element("button", text);
  node.className = "link";
  node.addEventListener("click", act);
  return node;
}

function table(rows) {
  const body = element("tbody");
  for (const [name, value] of rows) {
    const cell = element("td");
    cell.append(value instanceof Node ? value : String(value));
    body.append(element("tr", null, element("th", name), cell));
  }
  return element("table", null, body);
}

const taskLink = (board, pane, task) =>
  task > 1 ? link(pane.timeline.name(task), () => showTask(board, pane, task)) : element("span", pane.timeline.name(task));

/** The reason in its own words, where the page has them. */
function sentenceOf(reason) {
  return window.schedlabReasons?.[reason] ?? "";
}

function showDecision(board, pane, decision) {
  const { timeline } = pane;
  const rows = [
    ["when", instant(decision.time)], ["decided on", `CPU ${decision.cpu}`],
    ["reason", `${decision.reason}${sentenceOf(decision.reason) ? ": " + sentenceOf(decision.reason) : ""}`],
  ];
  if (decision.task >= 0) rows.splice(1, 0, ["task", taskLink(board, pane, decision.task)]);
  for (const [name, text] of decision.texts) rows.push([name, text]);
  for (const [name, number] of decision.numbers) rows.push([name, ["curr", "moved"].includes(name) ? `pid ${number}` : number]);
  const parts = [element("h3", `Decision: ${decision.kind}`), table(rows)];
  if (decision.candidates.length > 0) {
    const causes = new Map();
    for (const [cpu, refused] of decision.candidates) {
      const cause = refused || "taken or not refused";
      causes.set(cause, [...(causes.get(cause) ?? []), cpu]);
    }
    parts.push(element("h4", `Candidates: ${decision.candidates.length}, in the order of the search`));
    parts.push(table([...causes].map(([cause, cpus]) => [cause, cpus.join(" ")])));
  } else if (decision.class === "placements" && decision.chunk.data.candidates === null) {
    parts.push(element("p", "This file leaves the candidates out to stay small."));
  }
  board.panel.replaceChildren(...parts);
}

function showStretch(board, pane, stretch) {
  const { timeline } = pane;
  const rows = [
    ["task", taskLink(board, pane, stretch.task)], ["CPU", stretch.cpu], ["from", instant(stretch.from)],
    ["for", span(stretch.to - stretch.from)], ["then it", LEFT[stretch.left]],
    ["run queue at the start", timeline.queueAt(stretch.cpu, stretch.from)],
  ];
  const parts = [element("h3", timeline.name(stretch.task)), table(rows)];
  const wake = wakeBefore(timeline, stretch);
  if (wake) {
    const waker = wake.flags & 1 ? "an interrupt" : timeline.name(wake.waker);
    rows.push([wake.flags & 2 ? "started by" : "woken by", `${waker} on CPU ${wake.wakerCpu}, ${span(wake.latency)} before`]);
    parts[1] = table(rows);
  }
  const list = element("ul");
  for (const decision of decisionsAbout(timeline, stretch, wake)) {
    list.append(element("li", null, link(`${decision.kind}: ${decision.reason}`, () => board.select(pane, decision))));
  }
  if (list.children.length > 0) parts.push(element("h4", "Decisions that led here"), list);
  board.panel.replaceChildren(...parts);
}

function wakeBefore(timeline, stretch) {
  const wakes = stretch.chunk.data.wakes;
  if (!wakes) return null;
  for (let i = lastBefore(wakes.time, 0, wakes.count, stretch.from); i >= 0 && wakes.time[i] === stretch.from; i--) {
    if (wakes.wakee[i] !== stretch.task) continue;
    return { time: wakes.time[i], latency: wakes.latency[i], waker: wakes.waker[i], wakerCpu: wakes.wakerCpu[i], flags: wakes.flags[i] };
  }
  return null;
}

/** Decisions about a task from its wake-up, or a moment before it ran, on. */
function decisionsAbout(timeline, stretch, wake) {
  const from = wake ? wake.time - wake.latency - 1000 : stretch.from - 1e6;
  const found = [];
  const [first, end] = timeline.span(from, stretch.from);
  for (let c = first; c < end; c++) {
    const chunk = timeline.chunks[c];
    for (const kind of DECISIONS) {
      const data = chunk.data[kind];
      if (!data) continue;
      for (let i = lastBefore(data.time, 0, data.count, from) + 1; i < data.count && data.time[i] <= stretch.from; i++) {
        if (data.task[i] - 1 === stretch.task) found.push(decisionAt(timeline, chunk, kind, i));
      }
    }
  }
  return found.sort((a, b) => a.time - b.time).slice(-12);
}

function showTask(board, pane, task) {
  board.highlight(pane, task);
  const { tasks } = pane.timeline;
  const parent = tasks.parent[task] - 1;
  const rows = [
    ["parent", parent >= 0 ? taskLink(board, pane, parent) : "not in the trace"],
    ["in the trace", `${instant(tasks.first[task])} to ${instant(tasks.last[task])}`],
    ["ran", span(tasks.run_ns[task])], ["switched out", tasks.switches[task]], ["woken", tasks.wakeups[task]],
    ["moved", tasks.migrations[task]],
    ["waited after wake-ups", `${span(tasks.wait_ns[task])}, at most ${span(tasks.wait_ns_max[task])}`],
    ["go to", link("its first run", () => {
      const first = pane.path[0];
      if (first) goTo(board, pane, first.cpu, first.from, first.to);
    })],
  ];
  const parts = [element("h3", pane.timeline.name(task)), table(rows), ...curvesOfTask(pane, task)];
  board.panel.replaceChildren(...parts);
}

/** A CPU: its runs, and its state where the trace has it. */
function showCpu(board, pane, cpu) {
  goTo(board, pane, cpu, board.from, board.to);
  const { cpus } = pane.timeline.head;
  const rows = [["busy", span(cpus.busy_ns[cpu])], ["switches", cpus.switches[cpu]]];
  // The state of the machine has no CPU of its own to stand under.
  const series = new Map();
  for (const chunk of pane.timeline.chunks) {
    eachMark(chunk, 0, (name, time, value) => {
      const of = name.startsWith(`CPU ${cpu} `) || name.startsWith(`CPU ${cpu}:`) || name.startsWith("machine:");
      if (of) addTo(series, name, time, value);
    }, pane.timeline.names);
  }
  board.panel.replaceChildren(element("h3", `CPU ${cpu}`), table(rows), ...drawCurves(series));
}

const CURVES_MAX = 16;

function addTo(series, name, time, value) {
  if (!series.has(name)) series.set(name, [[], []]);
  series.get(name)[0].push(time / 1e9);
  series.get(name)[1].push(value);
}

function eachMark(chunk, task, give, names) {
  const marks = chunk.data.runs?.marks;
  for (let i = 0; marks && i < marks.time.length; i++) {
    if (marks.task[i] === task) give(names[marks.label[i]], marks.time[i], marks.value[i]);
  }
}

function drawCurves(series) {
  const parts = [];
  for (const [name, points] of [...series].filter(([, points]) => points[0].length > 1).slice(0, CURVES_MAX)) {
    const holder = element("div");
    parts.push(element("h4", name), holder);
    drawCurve(holder, points, name);
  }
  return parts;
}

/** What state, marks and decisions report of a task, over time: load, lag, deadline where the trace has them. */
function curvesOfTask(pane, task) {
  const { timeline } = pane;
  const series = new Map(), numbers = new Map();
  const skip = new Set(["prev_cpu", "target", "cpu", "remote", "curr", "moved", "dst_cpu", "src_cpu"]);
  for (const chunk of timeline.chunks) {
    for (const kind of DECISIONS) {
      const data = chunk.data[kind];
      if (!data) continue;
      for (let i = 0; i < data.count; i++) {
        if (data.task[i] - 1 !== task) continue;
        for (let k = data.numberOffsets[i]; k < data.numberOffsets[i + 1]; k++) {
          const name = timeline.names[data.numberNames[k]];
          if (!skip.has(name)) addTo(numbers, name, data.time[i], data.numbers[k]);
        }
      }
    }
    eachMark(chunk, task, (name, time, value) => addTo(series, name, time, value), timeline.names);
  }
  return drawCurves(new Map([...series, ...numbers]));
}

/** Shows a place with some of what is around it. */
function goTo(board, pane, cpu, from, to) {
  const around = Math.max((to - from) / 2, 20000);
  board.selected = { pane, cpu, from, to };
  board.show(from - around, to + around);
  const row = pane.rowOf.get(cpu);
  if (row) pane.scroll.scrollTop = Math.max(0, row.y - pane.visible / 2);
}

/** Tasks, CPUs and reasons that fit a text. */
function findIn(panes, text) {
  const wanted = text.trim().toLowerCase();
  const hits = [];
  if (wanted === "") return hits;
  const several = panes.length > 1;
  for (const [index, pane] of panes.entries()) {
    const side = several ? `${"AB"[index] ?? index + 1}: ` : "";
    const { timeline } = pane;
    const cpu = /^(?:cpu\s*)?(\d+)$/.exec(wanted);
    if (cpu && Number(cpu[1]) < timeline.nrCpus) {
      const number = Number(cpu[1]);
      hits.push({ text: `${side}CPU ${number}`, go: (board) => showCpu(board, pane, number) });
    }
    const { name, pid } = timeline.tasks;
    for (let task = 2; task < name.length && hits.length < 200; task++) {
      const full = `${name[task]}-${pid[task]}`.toLowerCase();
      if (full.includes(wanted) || String(pid[task]) === wanted) {
        hits.push({ text: side + timeline.name(task), task, go: (board) => showTask(board, pane, task) });
      }
    }
    for (const [number, word] of timeline.names.entries()) {
      if (!word.toLowerCase().includes(wanted) || hits.length >= 250) continue;
      for (const kind of DECISIONS) {
        const count = timeline.chunks.reduce((sum, chunk) => sum + countReason(chunk.data[kind], number), 0);
        if (count === 0) continue;
        hits.push({ text: `${side}${word}: ${count} ${kind}`, reason: word, go: (board) => nextOfReason(board, pane, kind, number) });
      }
    }
  }
  return hits;
}

function countReason(data, number) {
  let count = 0;
  if (data) for (const reason of data.reason) if (reason === number) count++;
  return count;
}

/** Goes to the first decision of a reason behind the one that is shown, or to the first of all. */
function nextOfReason(board, pane, kind, number) {
  const { timeline } = pane;
  const after = board.lastReason?.number === number ? board.lastReason.time : -1;
  for (const from of [after, -1]) {
    for (const chunk of timeline.chunks) {
      const data = chunk.data[kind];
      if (!data || chunk.to <= from) continue;
      for (let i = lastBefore(data.time, 0, data.count, from) + 1; i < data.count; i++) {
        if (data.reason[i] !== number) continue;
        const decision = decisionAt(timeline, chunk, kind, i);
        board.lastReason = { number, time: decision.time };
        goTo(board, pane, cpuOf(decision), decision.time, decision.time);
        board.select(pane, decision);
        return;
      }
    }
  }
}

function showHits(board, hits) {
  const list = element("ul");
  for (const hit of hits.slice(0, 60)) list.append(element("li", null, link(hit.text, () => hit.go(board))));
  const title = hits.length === 0 ? "Nothing fits" : `${hits.length} found${hits.length > 60 ? ", 60 shown" : ""}; Enter goes through them`;
  board.panel.replaceChildren(...(board.search.value.trim() === "" ? [] : [element("h3", title), list]));
}
