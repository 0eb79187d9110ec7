// The panel with the treemap: the path above it, what is said of a node, and the legend.

import { copiesCsv } from "./csv.js";
import { byId, element, setState, setText, updateRows } from "./elements.js";
import { ownPart, pathText, shortened } from "./names.js";
import { count, ends, fixed, share } from "./numbers.js";
import { Treemap } from "./treemap.js";
import { everyNode, meansOf, nodesOf } from "./tree_nodes.js";

const LEVELS = 3;
const NODES = 1550;
const LIMITS = [40, 200, 1000];
const LITTLE = 0.5; // of the scale of colours, below which it is made anew

export class MapPanel {
  constructor(source, go) {
    this.panel = byId("map");
    this.source = source;
    this.go = go;
    this.limit = 0;
    this.details = byId("details");
    this.map = new Treemap(byId("treemap"), {
      open: (node) => this.opened(node),
      showMore: (node) => this.showMore(node),
      describe: (node, cell) => this.describe(node, cell),
      counted: source.counted,
    });
    setText(byId("map-key"), `area = √${source.counted}s · colour = mean reward · fading = uncertainty · click to open`);
    copiesCsv(byId("map-copy"), "tree", () => this.table());
  }

  // Of what is open, so many levels that it fits into an answer: two in a large tree, more in a small one.
  async load(experiment, node) {
    const limit = LIMITS[this.limit];
    const levels = this.limit ? 1 : LEVELS;
    const isNew = this.scaleOf !== experiment;
    const [view, whole] = await Promise.all([
      this.source.tree(experiment, node, levels, limit, this.limit ? limit + 1 : NODES),
      isNew && node ? this.source.tree(experiment, undefined, LEVELS, LIMITS[0], NODES) : null,
    ]);
    return () => {
      if (isNew) this.scale = null;
      this.scaleOf = experiment;
      if (whole) this.widenScale(nodesOf(whole));
      this.show(view);
    };
  }

  // One scale of colours is for the whole tree, whatever is open: it grows where means leave it, and is made anew only
  // where all that there is uses little of it.
  widenScale(root) {
    const [low, high] = meansOf(root);
    const isAll = root.path.length === 1;
    if (!this.scale || (isAll && high - low < LITTLE * (this.scale[1] - this.scale[0]))) this.scale = [low, high];
    else this.scale = [Math.min(low, this.scale[0]), Math.max(high, this.scale[1])];
  }

  show(view) {
    this.view = view;
    this.root = nodesOf(view);
    this.widenScale(this.root);
    this.showPath(view);
    const isNew = !this.root.decisions;
    setState(this.panel, "ready", isNew ? this.emptyText() : "");
    this.map.show(this.root, this.scale);
    this.showLegend();
    if (this.toFocus && this.map.focus(this.toFocus)) this.toFocus = null;
  }

  emptyText() {
    return this.view.path.length > 1 ? `No ${this.source.counted}s here yet.` : `No ${this.source.counted}s yet: the cells show what the model believes before any.`;
  }

  showPath({ path, sep }) {
    updateRows(
      byId("path"),
      path.map((name, i) => ({ name, label: ownPart(name, path[i - 1], sep), isLast: i === path.length - 1, isRoot: i === 0 })),
      (part) => `${part.name}\u0000${part.isLast}`,
      (part) => {
        const text = element("bdi", { text: shortened(part.label) });
        if (part.isLast) return element("span", { "aria-current": "location" }, text);
        return element("button", { type: "button", class: "link", onclick: () => this.go({ node: part.isRoot ? "" : String(part.name) }) }, text);
      },
      () => {},
    );
  }

  opened(node) {
    if (!node.children.length && !node.more) return;
    this.toFocus = node.key;
    this.go({ node: node.key });
  }

  back() {
    const { path } = this.view;
    if (path.length < 2) return;
    this.toFocus = String(path[path.length - 1]);
    this.go({ node: path.length === 2 ? "" : String(path[path.length - 2]) });
  }

  // A node is looked at with its parent open; a category is opened itself.
  lookAt(path, isOpen) {
    const node = path[path.length - 1];
    this.toFocus = String(node);
    const target = isOpen || path.length < 2 ? path : path.slice(0, -1);
    this.go({ node: target.length < 2 ? "" : String(target[target.length - 1]) });
  }

  showMore(node) {
    if (node !== this.root) this.opened(node);
    else if (this.limit + 1 < LIMITS.length) {
      this.limit += 1;
      this.go({});
    } else {
      byId("search-text").focus();
    }
  }

  // -- what is said of a node ----------------------------------------------------------------------

  describe(node, cell) {
    this.details.hidden = !node;
    if (!node) return;
    const digits = this.map.decimals;
    const inside = node.children.length ? node.children.filter((child) => !child.rest).length + node.more : node.more;
    const facts = [
      ["posterior mean", `${fixed(node.mean, digits)}  (95%: ${fixed(node.low, digits)} to ${fixed(node.high, digits)})`],
      ["observed mean", node.observed === null ? "no reward yet" : fixed(node.observed, digits)],
      [`${this.source.counted}s`, count(node.decisions)],
      ["uncertainty", `${share(node.uncertainty)} of the prior's`],
    ];
    if (inside) facts.push(["inside", count(inside)]);
    if (node.isRetired) facts.push(["retired", "never chosen now"]);
    if (node.isNew) facts.push(["new", "added lately"]);
    this.details.replaceChildren(
      element("strong", { dir: "auto", text: shortened(pathText(node.path, this.view.sep)) }),
      element("dl", {}, ...facts.flatMap(([name, text]) => [element("dt", { text: name }), element("dd", { text })])),
    );
    this.putBeside(cell);
  }

  putBeside(cell) {
    const place = cell.getBoundingClientRect();
    const own = this.details.getBoundingClientRect();
    const right = Math.min(place.left + 12, innerWidth - own.width - 8);
    const below = place.bottom + 6 + own.height < innerHeight ? place.bottom + 6 : Math.max(8, place.top - own.height - 6);
    const inner = place.height > 160 ? place.top + 58 : below;
    Object.assign(this.details.style, { left: `${Math.max(8, right)}px`, top: `${inner}px` });
  }

  showLegend() {
    const legend = byId("legend");
    if (!legend.firstChild) {
      legend.append(
        element("span", { class: "low" }), element("span", { class: "scale", role: "img", "aria-label": "from the lowest mean reward to the highest" }),
        element("span", { class: "high" }), element("span", { class: "uncertain" }), element("span", { text: "as uncertain as the prior" }),
        element("span", { class: "swatch retired" }), element("span", { text: "retired" }),
        element("span", { class: "swatch new" }), element("span", { text: "new" }),
      );
    }
    const [low, high] = ends(this.map.low, this.map.high);
    setText(legend.querySelector(".low"), `mean reward ${low}`);
    setText(legend.querySelector(".high"), high);
  }

  table() {
    const head = ["node", "path", "mean", "low", "high", "observed_mean", `${this.source.counted}s`, "uncertainty", "retired", "not_shown"];
    const rows = everyNode(this.root).filter((node) => !node.rest).map((node) => [
      node.key, node.path.slice(1).join(" > "), node.mean, node.low, node.high, node.observed, node.decisions,
      node.uncertainty, node.isRetired ? "yes" : "no", node.more,
    ]);
    return { head, rows };
  }
}
