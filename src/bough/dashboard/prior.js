// What the prior says: how much the nodes of each level differ, and where that is known from.

import { copiesCsv } from "./csv.js";
import { byId, element, setState, setText, updateRows } from "./elements.js";
import { clock, count, fixed, share, significant } from "./numbers.js";

const VAGUE = 1e4; // times its low end: an interval whose high end is more says nothing

export class PriorPanel {
  constructor(source) {
    Object.assign(this, { source, panel: byId("prior"), prior: null });
    copiesCsv(byId("prior-copy"), "prior", () => this.asTable());
  }

  async load(experiment) {
    const prior = await this.source.prior(experiment);
    return () => this.show(prior);
  }

  show(prior) {
    this.prior = prior;
    setState(this.panel, "ready");
    const host = byId("prior-table");
    if (!host.firstChild) {
      const heads = ["level", "variance", "95% interval", "share of variance", "nodes tried"];
      host.append(element(
        "table", { class: "prior", "aria-label": "The prior by level" },
        element("thead", {}, element("tr", {}, ...heads.map((text, i) => element("th", { scope: "col", text, class: i === 1 || i === 4 ? "n" : null })))),
        element("tbody"),
      ));
    }
    updateRows(
      host.querySelector("tbody"),
      prior.levels,
      (level) => level.level,
      () => element(
        "tr", {}, element("th", { scope: "row" }), element("td", { class: "n" }), element("td"),
        element("td", {}, element("span", { class: "share" }, element("i")), element("span", { class: "n" })), element("td", { class: "n" }),
      ),
      (row, level) => {
        const [name, variance, interval, part, nodes] = row.children;
        setText(name, typeof level.level === "number" ? (level.level === 0 ? "root" : `level ${level.level}`) : level.level);
        setText(variance, significant(level.variance));
        setText(interval, intervalOf(level) || "given, not learned");
        part.firstChild.firstChild.style.width = share(level.share);
        setText(part.lastChild, share(level.share));
        setText(nodes, `${count(level.touched)} of ${count(level.nodes)}`);
      },
    );
    this.showFacts(prior);
  }

  showFacts(prior) {
    const facts = [
      ["mean reward before all observations", fixed(prior.mean, 3)],
      ...noiseFacts(prior),
      ["actions never tried", `${count(prior.untouched)} of ${count(prior.actions)}`],
      ["retired", count(prior.retired)],
    ];
    const { fitted } = prior;
    if (fitted) facts.push([fitted.refit ? "last refit" : "model since", `${clock(fitted.at)}, version ${fitted.version}`]);
    if (!fitted?.refit) facts.push(["last refit", "none"]);
    byId("prior-facts").replaceChildren(...facts.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text })]));
  }

  asTable() {
    const names = ["level", "variance", "low", "high", "share", "nodes", "touched"];
    return { head: names, rows: (this.prior?.levels ?? []).map((level) => names.map((name) => (name === "level" ? String(level.level) : level[name]))) };
  }
}

function noiseFacts({ noise_variance: variance, noise }) {
  const what = "variance of a reward around its action's mean";
  if (!noise) return variance === null ? [] : [[what, significant(variance)]];
  const { median, spread, floor } = noise;
  const at = (deviations) => significant(floor.value + median.value * Math.exp(deviations * spread.value));
  const own = `its own for each action: two thirds of the actions between ${at(-1)} and ${at(1)}`;
  return [
    [what, spread.value ? own : `${at(0)} for every action`],
    ["its median, above the floor", withInterval(median)],
    ["spread of its logarithm", withInterval(spread)],
    ["its floor", withInterval(floor)],
  ];
}

function withInterval(one) {
  const interval = intervalOf(one);
  const isVague = one.high === null || one.high > VAGUE * one.low;
  return significant(one.value) + (interval && ` (${isVague ? "hardly known" : `95% interval ${interval}`})`);
}

function intervalOf({ low, high }) {
  return low === null || low === high ? "" : `${significant(low)} to ${significant(high)}`;
}
