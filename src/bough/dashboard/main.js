// The page: where one is, what is loaded when, and what is said when something fails.

import { BestPanel } from "./best.js";
import { byId, element, setAttribute, setState, setText, updateRows } from "./elements.js";
import { HealthPanel, showCounts } from "./health.js";
import { MapPanel } from "./map.js";
import { clock } from "./numbers.js";
import { TimePanel } from "./over_time.js";
import { keepKey, readPlace, takeKey, writePlace } from "./place.js";
import { PriorPanel } from "./prior.js";
import { Search } from "./search.js";
import { findSource } from "./source.js";
import { WhyPanel } from "./why.js";

const REFRESH = 3000;
const SELDOM = 5; // refreshes, after which what changes slowly is asked for again
const STALE = 10000;

class Page {
  constructor() {
    takeKey();
    this.place = readPlace();
    this.source = findSource();
    const go = (change) => this.go(change);
    const lookAt = (path, isOpen) => this.map.lookAt(path, isOpen);
    this.map = new MapPanel(this.source, go);
    this.best = new BestPanel(this.source, go, lookAt);
    this.why = new WhyPanel(this.source, go);
    this.time = new TimePanel(this.source, go);
    this.prior = new PriorPanel(this.source);
    this.health = new HealthPanel(this.source);
    this.search = new Search(this.source, lookAt);
    this.rounds = 0;
    this.asked = 0;
    this.lastGood = performance.now();
    this.listen();
    this.chooseTheme(sessionStorage.getItem("bough-theme"));
  }

  listen() {
    const moved = () => {
      if (takeKey()) this.lastGood = performance.now();
      this.place = readPlace();
      this.map.limit = 0;
      this.load(true);
    };
    addEventListener("popstate", moved);
    addEventListener("hashchange", moved);
    addEventListener("keydown", (event) => this.pressed(event));
    document.addEventListener("visibilitychange", () => document.hidden || this.load());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    byId("theme").addEventListener("click", () => this.chooseTheme(isDark() ? "light" : "dark"));
    byId("experiment-select").addEventListener("change", (event) => this.go({ experiment: event.target.value, node: "", decision: "" }));
    byId("key-form").addEventListener("submit", (event) => {
      event.preventDefault();
      keepKey(byId("key-text").value.trim());
      byId("key-text").value = "";
      this.load(true);
    });
  }

  pressed(event) {
    const isTyping = event.target instanceof Element && event.target.closest("input, select, textarea");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      byId("search-text").focus();
    } else if (event.key === "Escape" && this.map.view) this.map.back();
  }

  chooseTheme(theme) {
    if (theme) {
      sessionStorage.setItem("bough-theme", theme);
      document.documentElement.dataset.theme = theme;
    }
    this.repaint();
  }

  repaint() {
    setText(byId("theme"), isDark() ? "Light" : "Dark");
    this.map.map.repaint();
    this.time.repaint();
  }

  // -- where one is --------------------------------------------------------------------------------

  go(change) {
    const isElsewhere = "node" in change || "experiment" in change;
    if (isElsewhere) this.map.limit = 0;
    this.place = { ...this.place, ...change };
    writePlace(this.place, { isNew: isElsewhere });
    this.load(true);
  }

  // -- what is loaded ------------------------------------------------------------------------------

  async run() {
    for (;;) {
      if (!document.hidden || !this.rounds) await this.load();
      if (!this.source.isLive) return;
      await new Promise((resolve) => setTimeout(resolve, REFRESH));
    }
  }

  // All that is shown is asked for together; an answer that somebody no longer waits for is not shown.
  async load(isAsked = false) {
    const mine = ++this.asked;
    const isWhole = isAsked || this.rounds % SELDOM === 0;
    try {
      await this.chooseExperiment();
      const { experiment, node } = this.place;
      if (!experiment) return;
      this.search.experiment = experiment;
      await this.show(mine, this.map.panel, this.map.load(experiment, node));
      this.best.sep = this.why.sep = this.search.sep = this.map.view?.sep;
      const panels = [this.best, this.why, ...(this.source.isLive ? [this.health] : [])];
      if (isWhole) panels.push(this.prior, ...(this.source.isLive ? [this.time] : []));
      await Promise.all(panels.map((panel) => this.show(mine, panel.panel, panel.load(experiment, this.place))));
      if (mine === this.asked) this.succeeded();
      this.rounds += 1;
    } catch (error) {
      if (mine === this.asked) this.failed(error);
    }
  }

  async show(mine, panel, loading) {
    try {
      const draw = await loading;
      if (mine === this.asked) draw();
    } catch (error) {
      if (mine === this.asked && panel.dataset.state !== "ready" && !error.isStarting) setState(panel, "failed", `This could not be loaded: ${error.message}`);
      throw error;
    }
  }

  async chooseExperiment() {
    if (this.experiments && this.place.experiment && this.rounds % SELDOM) return;
    if (this.place.experiment && this.experiments === null) return; // the key is for one experiment only
    try {
      this.experiments = await this.source.experiments();
    } catch (error) {
      if (error.status !== 403 || !this.place.experiment) throw error;
      this.experiments = null;
    }
    const names = (this.experiments ?? []).map((one) => one.name);
    if (!this.place.experiment && names.length) {
      this.place.experiment = names[0];
      writePlace(this.place);
    }
    if (!this.place.experiment) {
      setAttribute(document.body, "data-state", "empty");
      for (const panel of document.querySelectorAll(".panel[data-state]")) setState(panel, "empty", "There is no experiment yet: bough serve --model FILE --experiment NAME begins one.");
    }
    this.showExperiment(names);
  }

  showExperiment(names) {
    const { experiment } = this.place;
    const label = this.source.isLive ? experiment || "" : this.source.data.title;
    setText(byId("experiment-name"), names.length > 1 ? "" : label);
    document.title = label ? `${label} · bough` : "bough";
    byId("experiment-choice").hidden = names.length < 2;
    updateRows(byId("experiment-select"), names, (name) => name, (name) => element("option", { value: name, text: name }), () => {});
    byId("experiment-select").value = experiment;
  }

  // -- what is said --------------------------------------------------------------------------------

  succeeded() {
    this.lastGood = performance.now();
    this.lastTime = Date.now() / 1000;
    setAttribute(document.body, "data-state", "ready");
    byId("banner").hidden = true;
    byId("key-form").hidden = true;
    document.querySelector("main").hidden = false;
    if (!this.source.isLive) this.showFile();
  }

  showFile() {
    const { data } = this.source;
    setText(byId("pill"), `as of ${clock(data.at)}`);
    showCounts([[data.experiment.observations, "reward"], [data.experiment.actions, "action"]]);
    byId("left-out").hidden = !data.left_out;
    setText(byId("left-out"), data.left_out);
  }

  failed(error) {
    const isKey = error.status === 401 || error.status === 403;
    byId("key-form").hidden = !isKey;
    const isStale = this.lastTime !== undefined;
    const isOld = performance.now() - this.lastGood > STALE;
    setAttribute(document.body, "data-state", isStale ? "stale" : error.isStarting ? "starting" : "failed");
    document.querySelector("main").hidden = isKey && !isStale;
    if (error.isStarting) for (const panel of document.querySelectorAll(".panel[data-state=failed]")) setState(panel, "loading");
    else for (const panel of document.querySelectorAll(".panel[data-state=loading]")) setState(panel, "failed", "This could not be loaded.");
    const pill = byId("pill");
    setText(pill, error.isStarting ? "starting" : isStale ? "stale" : isKey ? "no key" : "failed");
    setAttribute(pill, "class", error.isStarting ? "pill" : "pill bad");
    const banner = byId("banner");
    setAttribute(banner, "class", error.isStarting ? "calm" : null);
    banner.hidden = isStale && !isOld && !isKey && !error.isStarting;
    const known = isStale ? ` These numbers are of ${clock(this.lastTime)}.` : "";
    const why = error.name === "TypeError" || error.name === "TimeoutError" ? "the service does not answer" : error.message;
    const next = isKey ? "" : error.isStarting ? " This page loads by itself when that is done." : " Trying again every few seconds.";
    setText(banner, `${sentence(error.isStarting ? `the service is starting: ${why.split("; ")[0]}` : why)}${known}${next}`);
  }
}

function sentence(text) {
  return `${text[0].toUpperCase()}${text.slice(1)}.`;
}

function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

new Page().run();
