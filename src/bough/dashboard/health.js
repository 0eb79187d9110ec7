// Health: whether the service keeps up, and what it could not do.

import { byId, element, setAttribute, setState, setText, updateRows } from "./elements.js";
import { ago, count, plural, share } from "./numbers.js";

const SLOW = 10;
const MEANINGS = {
  learn: "decides and learns",
  observe: "watches the caller's own actions, and learns from them",
  frozen: "decides, and does not learn",
};

export class HealthPanel {
  constructor(source) {
    Object.assign(this, { source, panel: byId("health") });
    this.panel.hidden = !source.isLive;
  }

  async load(experiment) {
    const [state, info] = await Promise.all([this.source.state(experiment), this.source.experiment(experiment)]);
    return () => this.show(state, info);
  }

  show(state, info) {
    setState(this.panel, "ready");
    const rate = state.requests ? state.errors / state.requests : 0;
    const facts = [
      ["mode", `${state.mode}: ${MEANINGS[state.mode]}`, true],
      ["lag", state.lag < 0.05 ? "none: all that is logged is learned" : `${state.lag.toFixed(1)} s behind the log`, state.lag < SLOW],
      ["quarantine", state.quarantined ? `${plural(state.quarantined, "record")} could not be learned: ${state.quarantine.at(-1)}` : "empty", !state.quarantined],
      ["last snapshot", state.snapshot === null ? "none yet" : ago(state.at - state.snapshot), true],
      ["errors, last 15 min", `${share(rate)} (${count(state.errors)} of ${plural(state.requests, "request")})`, rate < 0.01],
      ["model", info.model_version ? `version ${info.model_version}${info.refit ? `; refit ${info.refit}` : ""}` : "none yet", info.model_version > 0],
      ["keeper", state.keeper ? "this process" : "another process", true],
    ];
    updateRows(
      byId("health-facts"),
      facts,
      ([name]) => name,
      () => element("div", {}, element("dt"), element("dd")),
      (target, [name, text, isGood]) => {
        setText(target.firstChild, name);
        setText(target.lastChild, isGood ? text : `${text} ⚠`);
        setAttribute(target, "class", isGood ? "good" : "bad");
      },
    );
    this.showTop(state, info, facts.every(([, , isGood]) => isGood));
  }

  showTop(state, info, isGood) {
    const pill = byId("pill");
    setText(pill, isGood ? "healthy" : "needs a look");
    setAttribute(pill, "class", `pill ${isGood ? "good" : "bad"}`);
    showCounts([[state.decisions, "decision"], [state.rewards, "reward"], [info.actions, "action"], [state.nodes_tried, "node", " tried"]]);
  }
}

export function showCounts(counts) {
  updateRows(
    byId("counts"),
    counts,
    ([, word]) => word,
    () => element("span", {}, element("b"), element("span")),
    (target, [value, word, more = ""]) => {
      setText(target.firstChild, count(value));
      setText(target.lastChild, ` ${word}${value === 1 ? "" : "s"}${more}`);
    },
  );
}
