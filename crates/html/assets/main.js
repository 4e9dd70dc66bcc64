// Starts the page.

async function openTimelines() {
  const holder = document.getElementById("timelines");
  if (!holder) return null;
  const served = holder.dataset.served !== undefined;
  const timelines = [];
  for (let index = 0; index < Number(holder.dataset.count); index++) {
    if (served) {
      const head = await (await fetch("head")).json();
      const overview = await inflate(new Uint8Array(await (await fetch("overview")).arrayBuffer()));
      timelines.push(new Timeline(head, overview, new Served(head)));
      continue;
    }
    const text = (id) => document.getElementById(id).textContent;
    const head = JSON.parse(new TextDecoder().decode(await inflate(bytesOfBase64(text(`t${index}-head`)))));
    const overview = await inflate(bytesOfBase64(text(`t${index}-overview`)));
    timelines.push(new Timeline(head, overview, new Embedded(index)));
  }
  const board = new Board(holder, timelines);
  board.draw();
  board.stats.firstPicture = performance.now();
  return board;
}

/** Decodes the rest while nothing else is to be done. A served trace may be too large for that. */
async function loadAll(board) {
  for (const pane of board.panes) {
    if (pane.timeline.isServed) continue;
    for (const chunk of pane.timeline.chunks) {
      await pane.timeline.load(chunk.index);
      await new Promise((resume) => setTimeout(resume));
    }
  }
  if (board.wanted) {
    for (const pane of board.panes) {
      const task = pane.timeline.tasks.name.findIndex((_, at) => at > 1 && pane.timeline.name(at) === board.wanted);
      if (task > 1) showTask(board, pane, task);
    }
  }
  board.redraw();
}

/** Buttons that show a place in the timeline. */
function placeButtons(board) {
  for (const button of document.querySelectorAll("button[data-from]")) {
    button.addEventListener("click", () => {
      const { from, to, cpu } = button.dataset;
      const pane = board.panes[0];
      goTo(board, pane, cpu === undefined ? -1 : Number(cpu), Number(from) * 1e9, Number(to) * 1e9);
      board.element.scrollIntoView({ behavior: "smooth" });
    });
  }
}

function themeButton() {
  const button = document.getElementById("theme");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    window.schedlab.board?.recolour();
  });
}

window.schedlab = { board: null, loaded: null, error: null };
window.perfettoForTest = (index) => perfettoOf(window.schedlab.board.panes[index].timeline);
addEventListener("error", (event) => { window.schedlab.error ??= String(event.message); });
addEventListener("unhandledrejection", (event) => { window.schedlab.error ??= String(event.reason); });
window.schedlab.opened = (async () => {
  themeButton();
  const board = await openTimelines();
  window.schedlab.board = board;
  drawCharts();
  if (board) placeButtons(board);
  window.schedlab.loaded = board ? loadAll(board) : Promise.resolve();
  return board;
})();
window.schedlab.opened.catch((error) => {
  const holder = document.getElementById("timelines");
  if (holder) holder.textContent = `This page cannot be drawn: ${error.message}. It needs a browser of 2023 or later.`;
});
