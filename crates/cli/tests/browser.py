"""Drives a headless Chromium over pages of schedlab: opens, zooms, searches, clicks, saves.

browser.py PAGE_OR_URL [--task NAME-PID] [--reason NAME] [--perfetto FILE] [--picture FILE] [--size 1500x1000]

Prints one JSON object with what it saw, and exits with 1 where the page reported an error.
"""

import argparse
import base64
import json
import pathlib
import sys

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

WAIT = """
const done = arguments[arguments.length - 1];
const drawn = () => new Promise((resume) => requestAnimationFrame(() => setTimeout(resume, 20)));
"""

OPEN = WAIT + """
schedlab.opened.then(async (board) => {
  await schedlab.loaded;
  await drawn();
  done({ board: board !== null, first: board?.stats.firstPicture ?? 0, cpus: board?.panes[0].timeline.nrCpus ?? 0,
    panes: board?.panes.length ?? 0, events: board?.panes[0].timeline.head.events ?? 0, level: board?.panes[0].level ?? "",
    curves: document.querySelectorAll(".uplot").length, error: schedlab.error });
}, (error) => done({ error: String(error.stack ?? error) }));
"""

# A key is pressed as a person would, at a place where something happens.
ZOOM = WAIT + """
(async () => {
  const board = schedlab.board;
  const widths = [];
  for (let i = 0; i < arguments[0]; i++) {
    dispatchEvent(new KeyboardEvent("keydown", { key: "w", bubbles: true }));
    await drawn();
    widths.push(board.to - board.from);
  }
  done({ widths, levels: board.panes.map((pane) => pane.level), error: schedlab.error });
})();
"""

SEARCH = WAIT + """
(async () => {
  const board = schedlab.board;
  board.search.value = arguments[0];
  board.search.dispatchEvent(new Event("input"));
  const hits = board.hits.map((hit) => hit.text);
  if (hits.length > 0) board.search.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter" }));
  await drawn();
  const pane = board.panes[0];
  done({ hits, highlighted: pane.highlighted > 1 ? pane.timeline.name(pane.highlighted) : "", stretches: pane.path.length,
    panel: board.panel.innerText, error: schedlab.error });
})();
"""

# Clicks on the first diamond in the picture.
CLICK = WAIT + """
(async () => {
  const board = schedlab.board, pane = board.panes[0];
  const mark = pane.marks.find((mark) => mark.decision.class === "placements");
  if (!mark) return done({ panel: "", error: "there is no decision in the picture" });
  const box = pane.canvas.getBoundingClientRect();
  pane.canvas.dispatchEvent(new MouseEvent("click", { clientX: box.left + mark.x, clientY: box.top + mark.y, bubbles: true }));
  await drawn();
  done({ panel: board.panel.innerText, expected: mark.decision.reason, error: schedlab.error });
})();
"""

PERFETTO = WAIT + """
(async () => {
  const bytes = new Uint8Array(await perfettoForTest(0).arrayBuffer());
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  done({ base64: btoa(text), error: schedlab.error });
})();
"""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("page")
    parser.add_argument("--task")
    parser.add_argument("--reason")
    parser.add_argument("--perfetto", type=pathlib.Path)
    parser.add_argument("--picture", type=pathlib.Path)
    parser.add_argument("--size", default="1500x1000")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--driver", default="/usr/bin/chromedriver")
    args = parser.parse_args()

    options = webdriver.ChromeOptions()
    options.binary_location = args.chromium
    width, height = args.size.split("x")
    for option in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]:
        options.add_argument(option)
    options.add_argument(f"--window-size={width},{height}")
    if args.dark:
        options.add_argument("--force-dark-mode")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(args.driver))
    driver.set_script_timeout(120)
    seen: dict = {}
    try:
        url = args.page if "://" in args.page else pathlib.Path(args.page).resolve().as_uri()
        driver.get(url)
        # The page may load nothing but itself.
        seen["open"] = driver.execute_async_script(OPEN)
        seen["loaded"] = driver.execute_script(
            "return performance.getEntriesByType('resource').map((entry) => entry.name)"
        )
        if seen["open"].get("board"):
            # The time of the thread, not of the clock: other work on the machine does not count.
            driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
            before = busy(driver)
            seen["zoom"] = driver.execute_async_script(ZOOM, 10)
            seen["zoom"]["ms_per_step"] = (busy(driver) - before) * 1000 / 10
            if args.task:
                seen["task"] = driver.execute_async_script(SEARCH, args.task)
            if args.reason:
                seen["reason"] = driver.execute_async_script(SEARCH, args.reason)
                driver.execute_script("schedlab.board.clear()")
                seen["click"] = driver.execute_async_script(CLICK)
            if args.perfetto:
                args.perfetto.write_bytes(base64.b64decode(driver.execute_async_script(PERFETTO)["base64"]))
        if args.picture:
            driver.save_screenshot(str(args.picture))
        severe = [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
        # Browsers ask a server for an icon by themselves.
        seen["severe"] = [message for message in severe if "favicon" not in message]
    finally:
        driver.quit()
    json.dump(seen, sys.stdout)
    failed = seen["severe"] or any(isinstance(part, dict) and part.get("error") for part in seen.values())
    return 1 if failed else 0


def busy(driver) -> float:
    """Seconds that the page's thread has worked."""
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration")


if __name__ == "__main__":
    sys.exit(main())
