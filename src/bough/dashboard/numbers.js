// Numbers and times as people read them.

const counting = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const roughly = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const compactly = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export function count(value) {
  return counting.format(value);
}

export function shortCount(value) {
  return Math.abs(value) < 100000 ? counting.format(value) : compactly.format(value);
}

export function plural(value, word) {
  return `${count(value)} ${word}${value === 1 ? "" : "s"}`;
}

// At least two decimals, and as many more as it takes to tell values of such a range apart.
export function decimalsFor(low, high) {
  const range = high - low;
  if (!(range > 0) || !Number.isFinite(range)) return 2;
  return Math.min(Math.max(2, 2 - Math.floor(Math.log10(range))), 6);
}

export function decimalsOf(values) {
  const known = values.filter((value) => typeof value === "number" && Number.isFinite(value));
  return known.length ? decimalsFor(Math.min(...known), Math.max(...known)) : 2;
}

export function fixed(value, decimals = 2) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 1e9) return value.toExponential(3);
  return value.toFixed(decimals).replace("-", "−");
}

// Whether an interval is as wide above the mean as below.
export function symmetric({ mean, low, high }) {
  return Math.abs(high + low - 2 * mean) <= 0.01 * (high - low);
}

// Both ends of a scale in few digits, and in as many as it takes where they would look the same.
export function ends(low, high) {
  const texts = [significant(low), significant(high)];
  return texts[0] === texts[1] && low < high ? [low, high].map((value) => fixed(value, decimalsFor(low, high))) : texts;
}

// The labels of ticks at equal steps: as many decimals as tell them apart, and no more.
export function tickTexts(values, unit = "") {
  const known = values.filter((value) => value !== null);
  const step = known.length > 1 ? known[1] - known[0] : Math.abs(known[0] ?? 0);
  const decimals = step > 0 ? Math.min(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)), 12) : 0;
  const isExact = Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) < 1e-6;
  const digits = isExact ? decimals : decimals + 1;
  return values.map((value) => (value === null ? "" : (digits ? fixed(value, digits) : count(value).replace("-", "−")) + unit));
}

export function significant(value) {
  if (value === null || value === undefined) return "–";
  return roughly.format(value).replace("-", "−");
}

export function share(value) {
  if (value === null || value === undefined) return "–";
  return `${(100 * value).toFixed(value > 0 && value < 0.1 ? 1 : 0)}%`;
}

export function ago(seconds) {
  if (seconds < 1.5) return "now";
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

export function clock(at) {
  return new Date(at * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}

export function clockOfDay(at) {
  return new Date(at * 1000).toLocaleTimeString("en-GB");
}
