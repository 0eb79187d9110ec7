// What happened over time: four charts, with a marker where the catalogue, the model or the mode changed.

import { readPalette } from "./colours.js";
import { copiesCsv } from "./csv.js";
import { byId, choiceButtons, element, setAttribute, setState, setText } from "./elements.js";
import { clock, clockOfDay, count, decimalsOf, fixed, share, significant, tickTexts } from "./numbers.js";

const RANGES = [["60", "1 h"], ["360", "6 h"], ["1440", "1 day"], ["10080", "7 days"]];
const HEIGHT = 150;
const MINUTE = 60;
const CHARTS = [
  { id: "reward", title: "Reward per decision", note: "mean and 95% interval", colour: "reward", columns: ["low", "high", "mean"], say: (value, digits) => fixed(value, digits) },
  { id: "traffic", title: "Decisions per minute", colour: "traffic", columns: ["per_minute"], fromZero: true, say: (value) => significant(value) },
  { id: "exploration", title: "Share of exploration", note: "not the best by mean", colour: "traffic", columns: ["exploration"], fromZero: true, say: (value) => share(value) },
  { id: "gain", title: "Estimated gain left", note: "per decision, E[max] − E[chosen]", colour: "reward", columns: ["gain_left"], fromZero: true, say: (value, digits) => fixed(value, digits) },
];

export class TimePanel {
  constructor(source, go) {
    Object.assign(this, { source, go, panel: byId("time"), charts: new Map(), changes: [] });
    this.panel.hidden = !source.isLive;
    copiesCsv(byId("time-copy"), "series", () => this.asTable());
    new ResizeObserver(() => this.resize()).observe(byId("charts"));
  }

  async load(experiment, place) {
    const minutes = rangeOf(place);
    const series = await this.source.series(experiment, minutes);
    return () => this.show(minutes, series);
  }

  show(minutes, series) {
    choiceButtons(byId("time-ranges"), RANGES, minutes, (value) => this.go({ minutes: value === "60" ? "" : value }));
    this.series = { ...series, per_minute: perMinute(series) };
    this.changes = series.changes;
    this.from = firstShown(this.series);
    const isEmpty = !series.decisions.some(Boolean) && !series.rewards.some(Boolean);
    setState(this.panel, isEmpty ? "empty" : "ready", isEmpty ? "Nothing happened in this time." : "");
    byId("charts").hidden = isEmpty;
    if (!isEmpty) for (const chart of CHARTS) this.draw(chart);
    this.showChanges();
  }

  draw(chart) {
    let known = this.charts.get(chart.id);
    const data = [this.series.start, ...chart.columns.map((name) => this.series[name])].map((column) => column.slice(this.from));
    const values = chart.columns.flatMap((name) => this.series[name]).filter((value) => value !== null);
    const digits = decimalsOf(values);
    if (!known) {
      known = this.make(chart);
      this.charts.set(chart.id, known);
    }
    known.digits = digits;
    if (known.plot) known.plot.setData(data);
    else known.plot = new uPlot(this.options(chart, known), data, known.host);
    const latest = this.series[chart.columns.at(-1)].findLast((value) => value !== null);
    const said = latest === undefined ? "not known yet" : chart.say(latest, digits);
    setText(known.latest, said);
    setText(known.note, chart.id === "traffic" ? runningText(this.series) : chart.note);
    setAttribute(known.host, "aria-label", `${chart.title} over time; the latest value is ${said}. Copy as CSV has all values.`);
  }

  make(chart) {
    const latest = element("b", { class: "latest" });
    const host = element("div", { class: "chart", role: "img" });
    const note = element("small");
    const head = element("h3", {}, element("span", { text: chart.title }), " ", note, latest);
    byId("charts").append(element("div", { class: "chart-box", id: `chart-${chart.id}` }, head, host));
    return { latest, note, host, plot: null };
  }

  options(chart, known) {
    const palette = readPalette();
    const axis = { stroke: palette.soft, grid: { stroke: palette.line, width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const line = { stroke: palette[chart.colour], width: 1.5, points: { size: 4 }, spanGaps: false };
    const edge = { stroke: "transparent", width: 0, points: { show: false } };
    const hasBand = chart.columns.length === 3;
    return {
      width: known.host.clientWidth || 300,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, points: { size: 6 } },
      scales: { x: { range: (_, low, high) => this.timesOf(low, high) }, y: { range: chart.fromZero ? fromZero : undefined } },
      axes: [{ ...axis, space: 60, size: 30, values: (_, splits) => splits.map(timeText) }, { ...axis, size: 54, values: (_, splits) => axisTexts(chart, splits) }],
      series: [{}, ...(hasBand ? [edge, edge] : []), line],
      bands: hasBand ? [{ series: [2, 1], fill: palette.band }] : [],
      hooks: { draw: [(plot) => this.mark(plot, palette)], setCursor: [(plot) => this.readOut(chart, plot, known)] },
    };
  }

  // From the first span to the last, and as far as changes go, so that each has its line.
  timesOf(low, high) {
    const times = [low, high, ...this.changes.map((change) => change.at)].filter((at) => at !== null);
    const [first, last] = [Math.min(...times), Math.max(...times)];
    return first < last ? [first, last] : [first - MINUTE, last + MINUTE];
  }

  // A line where something was changed.
  mark(plot, palette) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = palette.mark;
    ctx.setLineDash([4, 3]);
    let drawn = 0;
    for (const change of this.changes) {
      const x = Math.round(plot.valToPos(change.at, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      drawn += 1;
    }
    setAttribute(plot.root, "data-changes", drawn);
    ctx.restore();
  }

  readOut(chart, plot, known) {
    const i = plot.cursor.idx;
    const value = i === null || i === undefined ? undefined : plot.data.at(-1)[i];
    known.host.title = value === undefined || value === null ? "" : `${clock(plot.data[0][i])}: ${chart.say(value, known.digits)}`;
  }

  showChanges() {
    const shown = this.changes.slice(-3).map((change) => `${clock(change.at)}: ${change.text}`);
    const more = this.changes.length > 3 ? ` and ${count(this.changes.length - 3)} before` : "";
    setText(byId("changes"), shown.length ? `Dashed lines are changes. ${shown.reverse().join("; ")}${more}.` : "");
  }

  resize() {
    for (const { plot, host } of this.charts.values()) {
      if (plot && host.clientWidth && host.clientWidth !== plot.width) plot.setSize({ width: host.clientWidth, height: HEIGHT });
    }
  }

  repaint() {
    for (const chart of CHARTS) {
      const known = this.charts.get(chart.id);
      if (!known?.plot) continue;
      known.plot.destroy();
      known.plot = null;
      this.draw(chart);
    }
  }

  asTable() {
    const names = ["start", "decisions", "rewards", "mean", "low", "high", "exploration", "gain_left", "late", "agreement"];
    return { head: names, rows: (this.series?.start ?? []).map((_, i) => names.map((name) => this.series[name][i])) };
  }
}

function rangeOf(place) {
  return RANGES.some(([minutes]) => minutes === place.minutes) ? place.minutes : "60";
}

// The last span has not ended, and would look like a fall.
function perMinute(series) {
  return series.decisions.map((n, i) => (i + 1 < series.decisions.length ? (60 * n) / series.seconds : null));
}

// What is before the first decision is left out, but for a few spans.
function firstShown(series) {
  const first = series.start.findIndex((_, i) => series.decisions[i] || series.rewards[i]);
  return first < 0 ? 0 : Math.max(0, Math.min(first - 1, series.start.length - 12));
}

function timeText(at, i, all) {
  const time = new Date(at * 1000);
  if (all.length > 1 && all[1] - all[0] < MINUTE) return clockOfDay(at);
  const isLong = all.at(-1) - all[0] > 172800;
  if (isLong || (time.getHours() === 0 && time.getMinutes() === 0)) return time.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return time.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

function fromZero(_, __, high) {
  return [0, high > 0 ? high * 1.1 : 1];
}

function axisTexts(chart, values) {
  return chart.id === "exploration" ? tickTexts(values.map((value) => 100 * value), "%") : tickTexts(values);
}

// The span that has not ended is no point of the chart: what has happened in it is said in words.
function runningText(series) {
  const running = series.decisions.at(-1) ?? 0;
  const isMinute = series.seconds === MINUTE;
  const last = isMinute ? "last full minute" : "last full span";
  return running ? `${last}; ${count(running)} so far in this one` : last;
}
