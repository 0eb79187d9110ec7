// Rows with a mean and its interval, all on one scale.

import { element, setAttribute, setText } from "./elements.js";
import { ownPart, shortened } from "./names.js";
import { fixed, shortCount } from "./numbers.js";

export function scaleOf(rows) {
  const low = Math.min(...rows.map((row) => row.low));
  const high = Math.max(...rows.map((row) => row.high));
  return high > low ? [low, high] : [low - 0.5, high + 0.5];
}

export function makeInterval() {
  return element("span", { class: "interval", role: "img" }, element("i", { class: "bar" }), element("i", { class: "tick" }));
}

export function changeInterval(target, row, [low, high], decimals) {
  const at = (value) => `${(100 * (value - low)) / (high - low)}%`;
  const [bar, tick] = target.children;
  Object.assign(bar.style, { left: at(row.low), width: `${(100 * (row.high - row.low)) / (high - low)}%` });
  tick.style.left = at(row.mean);
  setAttribute(target, "aria-label", `95% interval ${fixed(row.low, decimals)} to ${fixed(row.high, decimals)}`);
}

// The name of an action, and softer the category that it is in.
export function namedInCategory(path, sep, attributes) {
  const [above, parent, name] = [path.at(-3), path.at(-2), path.at(-1)];
  return element(
    "button", { type: "button", class: "link name", dir: "auto", ...attributes },
    element("b", { text: shortened(ownPart(name, parent, sep)) }), " ",
    element("small", { text: parent ? shortened(ownPart(parent, above, sep)) : "" }),
  );
}

// A row of a list: a name, the interval, the mean and how many decisions.
export function makeIntervalRow(name) {
  return element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, makeInterval()), element("td", { class: "n" }), element("td", { class: "n" }));
}

export function changeIntervalRow(target, row, scale, decimals) {
  const [, interval, mean, decisions] = target.children;
  changeInterval(interval.firstChild, row, scale, decimals);
  setText(mean, fixed(row.mean, decimals));
  setText(decisions, shortCount(row.decisions));
}

export function intervalTable(label, counted) {
  const heads = [["name"], ["95% interval"], ["mean", "n"], [`${counted}s`, "n"]];
  return element(
    "table",
    { class: "intervals", "aria-label": label },
    element("thead", {}, element("tr", {}, ...heads.map(([text, kind]) => element("th", { scope: "col", text, class: kind })))),
    element("tbody"),
  );
}
