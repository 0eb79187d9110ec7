// Why an action was chosen: the path from the root, each node beside its best siblings.

import { copiesCsv } from "./csv.js";
import { byId, element, setState, setText, updateRows } from "./elements.js";
import { changeIntervalRow, intervalTable, makeIntervalRow, namedInCategory, scaleOf } from "./intervals.js";
import { ownPart, shortened } from "./names.js";
import { clockOfDay, count, decimalsOf, fixed, share } from "./numbers.js";

const RECENT = 8;
const FAR = 0.5; // of what the 95% interval has above the mean, about one standard deviation

export class WhyPanel {
  constructor(source, go) {
    Object.assign(this, { source, go, panel: byId("why"), answer: null });
    byId("why-form").addEventListener("submit", (event) => {
      event.preventDefault();
      go({ decision: byId("why-id").value.trim() });
    });
    if (!source.isLive) {
      setText(byId("why-title"), "Why would it be chosen?");
      byId("why-form").hidden = true;
    }
    copiesCsv(byId("why-copy"), "explanation", () => this.asTable());
  }

  async load(experiment, place) {
    const { decisions } = await this.source.recent(experiment, RECENT);
    const shown = place.decision || (this.source.isLive ? null : decisions[0]?.decision_id);
    let answer = null;
    let problem = "";
    if (shown) {
      try {
        answer = await this.source.explain(experiment, shown);
      } catch (error) {
        if (error.status === undefined || error.status === 404) problem = error.message;
        else throw error;
      }
    }
    return () => this.show(decisions, shown, answer, problem);
  }

  show(decisions, shown, answer, problem) {
    const isEmpty = !decisions.length && !answer;
    const text = problem || (isEmpty ? "No decisions yet: ask for one, and it is explained here." : "");
    setState(this.panel, problem ? "failed" : isEmpty ? "empty" : "ready", text);
    this.showRecent(decisions, shown);
    this.answer = answer;
    const host = byId("why-answer");
    const key = answer ? JSON.stringify(answer) : "";
    if (host.dataset.of === key) return;
    host.dataset.of = key;
    host.replaceChildren(...(answer ? this.explanation(answer) : []));
  }

  showRecent(decisions, shown) {
    const host = byId("why-recent");
    if (!host.firstChild) host.append(element("table", { class: "recent", "aria-label": "The last decisions" }, element("tbody")));
    const rows = this.source.isLive && shown ? decisions.slice(0, 4) : decisions;
    updateRows(
      host.querySelector("tbody"),
      rows,
      (row) => row.decision_id,
      (row) => element(
        "tr", {},
        element("td", { class: "when", hidden: !this.source.isLive }),
        element("td", {}, namedInCategory(row.path.length ? row.path : [row.action], this.sep || "/", {
          title: `decision ${row.decision_id}`, onclick: () => this.go({ decision: row.decision_id }),
        })),
        element("td", { class: "n", hidden: !this.source.isLive }),
      ),
      (target, row) => {
        const [when, , reward] = target.children;
        setText(when, row.at === undefined ? "" : clockOfDay(row.at));
        setText(reward, row.reward === null ? "no reward yet" : row.reward === undefined ? "" : `reward ${fixed(row.reward, Number.isInteger(row.reward) ? 0 : 2)}`);
        target.classList.toggle("chosen", row.decision_id === shown);
      },
    );
  }

  explanation(answer) {
    const nodes = answer.nodes.slice(1);
    const rowsOf = (node) => [{ ...node, isChosen: true }, ...node.beside].sort((a, b) => a.rank - b.rank || (a.isChosen ? -1 : 1));
    const all = nodes.flatMap(rowsOf);
    const parts = [
      element("p", { class: "sentence", dir: "auto", text: `${answer.sentence[0]?.toUpperCase() ?? ""}${answer.sentence.slice(1)}${answer.sentence ? "." : ""}` }),
      this.facts(answer, decimalsOf(all.flatMap((row) => [row.low, row.high]))),
    ];
    if (all.length) {
      const scale = scaleOf(all);
      const decimals = decimalsOf(all.flatMap((row) => [row.low, row.high]));
      nodes.forEach((node, i) => parts.push(...this.level(node, answer.nodes[i], answer.nodes[i - 1], rowsOf(node), scale, decimals)));
    }
    parts.push(element("p", { class: "note", text: answer.note }));
    return parts;
  }

  facts(answer, decimals) {
    const facts = [];
    if (this.source.isLive) {
      facts.push(["decision", answer.decision_id]);
      facts.push(["drawn score", answer.drawn === null ? "not logged" : drawnText(answer, decimals)]);
      facts.push(["propensity", answer.propensity === null ? "not asked for" : share(answer.propensity)]);
    }
    if (answer.gain_left !== null) facts.push(["estimated gain left", fixed(answer.gain_left, decimals)]);
    return element("dl", { class: "facts" }, ...facts.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text })]));
  }

  level(node, above, aboveThat, rows, scale, decimals) {
    const sep = this.sep || "/";
    const label = (name) => shortened(ownPart(name, above.name, sep));
    const inside = ownPart(above.name, aboveThat?.name, sep);
    const title = element(
      "h3", { dir: "auto" }, element("b", { text: label(node.name) }), ` ranked ${count(node.rank)} of ${count(node.of)} in `, element("bdi", { text: shortened(inside) }),
    );
    const table = intervalTable(`${label(node.name)} beside its siblings`, this.source.counted);
    for (const row of rows) {
      const made = makeIntervalRow(element("span", { class: "name", dir: "auto", text: (row.isChosen ? "▸ " : "") + label(row.name) }));
      made.classList.toggle("chosen", Boolean(row.isChosen));
      made.dataset.rank = row.rank;
      changeIntervalRow(made, row, scale, decimals);
      table.tBodies[0].append(made);
    }
    return [title, table];
  }

  asTable() {
    const head = ["level", "name", "chosen", "rank", "of", "mean", "low", "high", `${this.source.counted}s`];
    const rows = (this.answer?.nodes ?? []).flatMap((node) => [
      [String(node.level), node.name, "yes", node.rank, node.of, node.mean, node.low, node.high, node.decisions],
      ...node.beside.map((one) => [String(node.level), one.name, "no", one.rank, node.of, one.mean, one.low, one.high, one.decisions]),
    ]);
    return { head, rows };
  }
}

// A draw that is far above what the action is expected to earn is why an action that is not the best was chosen.
function drawnText({ drawn, nodes }, decimals) {
  const text = fixed(drawn, decimals);
  const action = nodes.at(-1);
  if (!action || drawn - action.mean <= FAR * (action.high - action.mean)) return text;
  return `${text}: far above its mean of ${fixed(action.mean, decimals)}, so this was exploration`;
}
