// The treemap: area is the square root of decisions, colour the mean reward, fading the uncertainty.
// Cells are elements, one per node, which stay while their node is shown; only then can a keyboard reach them.

import { cellColour, readPalette, textOn, toText } from "./colours.js";
import { element, setAttribute, setText } from "./elements.js";
import { shortened } from "./names.js";
import { count, decimalsFor, fixed, plural, shortCount, symmetric } from "./numbers.js";
import { areaOf, everyNode } from "./tree_nodes.js";

const SMALLEST_HEADER = { width: 26, height: 34 };

export class Treemap {
  constructor(host, { open, showMore, describe, counted }) {
    this.host = host;
    this.counted = counted;
    this.open = open;
    this.showMore = showMore;
    this.describe = describe;
    this.cells = new Map();
    this.palette = readPalette();
    this.focused = null;
    host.addEventListener("click", (event) => this.clicked(event));
    host.addEventListener("keydown", (event) => this.pressed(event));
    host.addEventListener("focusin", (event) => this.entered(event.target, true));
    host.addEventListener("focusout", () => describe(null));
    host.addEventListener("pointerover", (event) => this.entered(event.target, false));
    host.addEventListener("pointerleave", () => describe(null));
    new ResizeObserver(() => this.root && this.place()).observe(host);
  }

  show(root, scale) {
    const isAnother = !this.root || this.root.key !== root.key;
    this.root = root;
    [this.low, this.high] = scale;
    this.decimals = decimalsFor(this.low, this.high);
    this.isSymmetric = everyNode(root).every((node) => node.rest || symmetric(node));
    this.place(isAnother);
  }

  repaint() {
    this.palette = readPalette();
    if (this.root) this.paint();
  }

  // A layout keeps who is beside whom while the nodes are the same, so that cells grow and shrink in place.
  place(isAnother = false) {
    const shape = everyNode(this.root).map((node) => node.key).sort().join("\n");
    const { width, height } = this.host.getBoundingClientRect();
    if (!width || !height) return;
    this.header = Math.round(1.45 * parseFloat(getComputedStyle(this.host).fontSize));
    if (isAnother || this.shape !== shape || !this.layout) {
      this.shape = shape;
      this.layout = d3.hierarchy(this.root).sort((a, b) => areaOf(b.data) - areaOf(a.data));
    } else {
      const now = new Map(everyNode(this.root).map((node) => [node.key, node]));
      this.layout.each((one) => (one.data = now.get(one.data.key)));
    }
    this.layout.each((one) => (one.value = 0));
    this.layout.eachAfter((one) => {
      one.value = one.children ? one.children.reduce((sum, child) => sum + child.value, 0) : areaOf(one.data);
    });
    d3.treemap().tile(d3.treemapResquarify).size([width, height]).round(true).paddingInner(gapIn).paddingTop((place) => this.headerOf(place))(this.layout);
    this.paint();
  }

  paint() {
    const gone = new Set(this.cells.keys());
    let before = null;
    this.layout.each((one) => {
      const node = one.data;
      gone.delete(node.key);
      let cell = this.cells.get(node.key);
      if (!cell) {
        cell = this.makeCell();
        this.cells.set(node.key, cell);
      }
      cell.node = node;
      this.changeCell(cell, one);
      const next = before ? before.nextSibling : this.host.firstChild;
      if (cell !== next) this.host.insertBefore(cell, next);
      before = cell;
    });
    for (const key of gone) {
      this.cells.get(key).remove();
      this.cells.delete(key);
    }
    this.keepOneStop();
  }

  makeCell() {
    return element(
      "div",
      { role: "treeitem", class: "cell", tabindex: "-1" },
      element("span", { class: "label", dir: "auto" }), " ",
      element("span", { class: "number" }), " ",
      element("span", { class: "number" }),
    );
  }

  changeCell(cell, place) {
    const node = place.data;
    const width = place.x1 - place.x0;
    const height = place.children ? Math.min(place.header, place.y1 - place.y0) : place.y1 - place.y0;
    Object.assign(cell.style, { left: `${place.x0}px`, top: `${place.y0}px`, width: `${width}px`, height: `${height}px` });
    const [label, first, second] = cell.children;
    cell.classList.toggle("header", Boolean(place.children));
    cell.classList.toggle("rest", Boolean(node.rest));
    cell.classList.toggle("retired", Boolean(node.isRetired));
    cell.classList.toggle("new", Boolean(node.isNew));
    setAttribute(cell, "aria-level", place.depth + 1);
    setAttribute(cell, "aria-expanded", place.children ? "true" : node.more ? "false" : null);
    const isTall = !place.children && height > 3 * this.header && width > 3.4 * this.header;
    const isWide = width > 5.6 * this.header;
    if (node.rest) {
      setText(label, width > 54 && height > 13 ? `+ ${count(node.rest)} more` : "");
      setAttribute(cell, "data-more", node.rest);
      setAttribute(cell, "aria-label", this.spoken(node));
      return;
    }
    setAttribute(cell, "data-node", node.name);
    setAttribute(cell, "data-mean", node.mean);
    setAttribute(cell, "data-deviation", node.deviation);
    setAttribute(cell, "data-decisions", node.decisions);
    setText(label, width > 38 && height > 12 ? shortened(node.label) : "");
    setText(first, isTall ? fixed(node.mean, this.decimals) + (isWide ? this.intervalText(node, width) : "") : "");
    setText(second, isTall ? (width > 7 * this.header ? plural(node.decisions, this.counted) : shortCount(node.decisions)) : "");
    setAttribute(cell, "aria-label", this.spoken(node, `${first.textContent} ${second.textContent}`.trim()));
    const colour = cellColour(this.palette, node.mean, this.low, this.high, node.uncertainty);
    cell.style.backgroundColor = toText(colour);
    cell.style.color = textOn(colour);
  }

  // Intervals of clicks and counts are not as wide to both sides, and never below nothing.
  intervalText(node, width) {
    if (this.isSymmetric) return ` ± ${fixed(node.high - node.mean, this.decimals)}`;
    return width > 10 * this.header ? ` (${fixed(node.low, this.decimals)} to ${fixed(node.high, this.decimals)})` : "";
  }

  // A node that is too small for a header row has an edge only.
  headerOf(place) {
    const isLarge = place.x1 - place.x0 > SMALLEST_HEADER.width && place.y1 - place.y0 > SMALLEST_HEADER.height;
    place.header = isLarge ? this.header : 3;
    return place.header;
  }

  // What a screen reader says begins with what is seen.
  spoken(node, seen = "") {
    if (node.rest) return `+ ${count(node.rest)} more in ${shortened(node.above.label)}; open them`;
    const inside = node.children.length || node.more;
    const said = [
      `${shortened(node.label)} ${seen}`.trim(),
      `mean ${fixed(node.mean, this.decimals)}, 95% interval ${fixed(node.low, this.decimals)} to ${fixed(node.high, this.decimals)}`,
      plural(node.decisions, this.counted),
    ];
    if (node.isRetired) said.push("retired");
    if (node.isNew) said.push("new");
    if (inside && node !== this.root) said.push("opens");
    return said.join("; ");
  }

  // -- who is where --------------------------------------------------------------------------------

  keepOneStop() {
    const focused = this.cells.get(this.focused) || this.cells.get(this.root.key);
    this.focused = focused.node.key;
    for (const cell of this.cells.values()) setAttribute(cell, "tabindex", cell === focused ? "0" : "-1");
  }

  focus(key) {
    const cell = this.cells.get(String(key));
    if (!cell) return false;
    this.focused = cell.node.key;
    this.keepOneStop();
    cell.focus();
    return true;
  }

  cellOf(target) {
    return target instanceof Element ? target.closest(".cell") : null;
  }

  entered(target, isFocus) {
    const cell = this.cellOf(target);
    if (!cell) return;
    if (isFocus && cell.node.key !== this.focused) {
      this.focused = cell.node.key;
      this.keepOneStop();
    }
    this.describe(cell.node.rest ? null : cell.node, cell);
  }

  clicked(event) {
    const cell = this.cellOf(event.target);
    if (cell) this.choose(cell.node);
  }

  choose(node) {
    if (node.rest) this.showMore(node.above);
    else if (node !== this.root) this.open(node);
  }

  pressed(event) {
    const cell = this.cellOf(event.target);
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
    const node = cell.node;
    const beside = node.above && node !== this.root ? node.above.children : [node];
    const at = beside.indexOf(node);
    const moves = {
      ArrowRight: () => beside[Math.min(at + 1, beside.length - 1)],
      ArrowLeft: () => beside[Math.max(at - 1, 0)],
      ArrowDown: () => node.children[0],
      ArrowUp: () => (node === this.root ? null : node.above),
      Home: () => beside[0],
      End: () => beside[beside.length - 1],
    };
    if (event.key in moves) {
      const next = moves[event.key]();
      if (next) this.focus(next.key);
    } else if (event.key === "Enter" || event.key === " ") {
      this.choose(node);
    } else return;
    event.preventDefault();
  }
}

// Departments stand further apart than what is in them.
function gapIn(place) {
  return place.depth ? 1 : 3;
}

