// The best actions, and other lists of them: mean, interval, decisions.

import { copiesCsv } from "./csv.js";
import { byId, choiceButtons, element, setAttribute, setState, setText, updateRows } from "./elements.js";
import { changeIntervalRow, intervalTable, makeIntervalRow, namedInCategory, scaleOf } from "./intervals.js";
import { shortened } from "./names.js";
import { decimalsOf } from "./numbers.js";

const SHOWN = 12;
const ORDERS = [["mean", "best"], ["uncertain", "most uncertain"], ["newest", "newest"], ["retired", "retired"]];
const TITLES = { mean: "Best actions", uncertain: "Most uncertain actions", newest: "Newest actions", retired: "Retired actions" };
const NONE = {
  mean: "There is no action.",
  uncertain: "There is no action.",
  newest: "No action has been added since the beginning.",
  retired: "No action is retired.",
};

export class BestPanel {
  constructor(source, go, lookAt) {
    Object.assign(this, { source, go, lookAt, panel: byId("best"), rows: [] });
    copiesCsv(byId("best-copy"), "actions", () => this.asTable());
  }

  async load(experiment, place) {
    const order = orderOf(place);
    const { nodes } = await this.source.top(experiment, order, SHOWN);
    return () => this.show(order, nodes);
  }

  show(order, rows) {
    this.rows = rows;
    setText(byId("best-title"), TITLES[order]);
    choiceButtons(byId("best-orders"), ORDERS, order, (list) => this.go({ list: list === "mean" ? "" : list }));
    setState(this.panel, rows.length ? "ready" : "empty", rows.length ? "" : NONE[order]);
    const host = byId("best-table");
    if (!host.firstChild) host.append(intervalTable("Actions with their means", this.source.counted));
    host.hidden = !rows.length;
    if (!rows.length) return;
    const scale = scaleOf(rows);
    const decimals = decimalsOf(rows.flatMap((row) => [row.low, row.high]));
    const sep = this.sep || "/";
    updateRows(
      host.querySelector("tbody"),
      rows,
      (row) => row.name,
      (row) => makeIntervalRow(namedInCategory(row.path, sep, { title: shortened(String(row.name)), onclick: () => this.lookAt(row.path, false) })),
      (target, row) => {
        changeIntervalRow(target, row, scale, decimals);
        setAttribute(target, "data-action", row.name);
        setAttribute(target, "data-mean", row.mean);
      },
    );
  }

  asTable() {
    const head = ["action", "mean", "low", "high", "observed_mean", `${this.source.counted}s`];
    return { head, rows: this.rows.map((row) => [row.name, row.mean, row.low, row.high, row.observed_mean, row.decisions]) };
  }
}

function orderOf(place) {
  return ORDERS.some(([order]) => order === place.list) ? place.list : "mean";
}
