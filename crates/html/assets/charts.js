// Pictures of numbers. Curves are drawn by uPlot, the rest as SVG.

const SIDES = ["#3b6fd4", "#d9480f", "#2b8a3e", "#862e9c", "#0b7285", "#a61e4d", "#5f3dc4", "#846358"];

function plot(holder, options, data) {
  const ink = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
  const faint = getComputedStyle(document.documentElement).getPropertyValue("--line").trim();
  const axes = options.axes.map((axis) => ({ stroke: ink, grid: { stroke: faint, width: 1 }, ticks: { stroke: faint }, ...axis }));
  return new uPlot({ width: Math.max(320, Math.min(900, holder.clientWidth || 640)), height: 260, ...options, axes }, data, holder);
}

/** A number over time. */
function drawCurve(holder, [times, values], name) {
  return plot(holder, {
    height: 150, scales: { x: { time: false } }, legend: { show: true },
    axes: [{ values: (_, ticks) => ticks.map((tick) => `${+tick.toPrecision(6)} s`) }, { size: 70 }],
    series: [{ label: "s" }, { label: name, stroke: SIDES[0], points: { size: 4 }, paths: uPlot.paths.stepped({ align: 1 }) }],
  }, [times, values]);
}

/** Cumulative curves on a logarithmic axis: { unit, curves: [{ name, points: [[value, share], ...] }] }. */
function drawCumulative(holder, spec) {
  const xs = [...new Set(spec.curves.flatMap((curve) => curve.points.map(([x]) => x)))].sort((a, b) => a - b);
  const at = (points) => {
    const own = new Map(points);
    let last = 0;
    return xs.map((x) => (own.has(x) ? (last = own.get(x)) : x < points[0]?.[0] ? null : last));
  };
  const data = [xs, ...spec.curves.map((curve) => at(curve.points))];
  const label = (value) => (spec.unit === "ns" ? span(value) : `${+value.toPrecision(3)} ${spec.unit}`);
  return plot(holder, {
    scales: { x: { time: false, distr: 3 }, y: { range: [0, 100] } },
    axes: [
      { values: (_, ticks) => ticks.map((tick) => (tick === null || !/^[125]/.test(tick.toExponential()) ? "" : label(tick))) },
      { values: (_, ticks) => ticks.map((tick) => `${tick} %`) },
    ],
    series: [{ label: "value", value: (_, v) => (v === null ? "" : label(v)) }, ...spec.curves.map((curve, i) => ({
      label: curve.name, stroke: SIDES[i % SIDES.length], width: 2, value: (_, v) => (v === null ? "" : `${v.toFixed(2)} %`),
      paths: uPlot.paths.stepped({ align: 1 }), points: { show: false },
    }))],
  }, data);
}

const DRAW = { cumulative: drawCumulative };

function drawCharts() {
  for (const script of document.querySelectorAll("script[data-chart]")) {
    const holder = script.previousElementSibling;
    DRAW[script.dataset.chart](holder, JSON.parse(script.textContent));
  }
}
