// Search by name: a list below the field, moved through by keys.

import { byId, element, setAttribute } from "./elements.js";
import { pathText, shortened } from "./names.js";
import { fixed, plural } from "./numbers.js";

const WAIT = 150;
const LISTED = 12;

export class Search {
  constructor(source, lookAt) {
    Object.assign(this, { source, lookAt, field: byId("search-text"), list: byId("search-results"), found: [], at: -1 });
    this.field.addEventListener("input", () => this.later());
    this.field.addEventListener("keydown", (event) => this.pressed(event));
    this.field.addEventListener("focus", () => this.field.value && this.later());
    this.field.addEventListener("blur", () => setTimeout(() => document.activeElement === this.field || this.close(), 200));
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.search(), WAIT);
  }

  async search() {
    const text = this.field.value.trim();
    if (!text) return this.close();
    let found = [];
    let said = "Nothing has that in its name.";
    try {
      found = (await this.source.search(this.experiment, text.slice(0, 256), LISTED)).nodes;
    } catch (error) {
      said = `The search failed: ${error.message}`;
    }
    if (text !== this.field.value.trim()) return; // somebody has typed on
    this.found = found;
    this.at = found.length ? 0 : -1;
    this.list.replaceChildren(
      ...(found.length ? found.map((node, i) => this.row(node, i)) : [element("li", { role: "option", "aria-disabled": "true", "aria-selected": "false", text: said })]),
    );
    this.list.hidden = false;
    setAttribute(this.field, "aria-expanded", "true");
    this.mark();
  }

  row(node, i) {
    return element(
      "li",
      { role: "option", id: `found-${i}`, "aria-selected": "false", onpointerdown: (event) => (event.preventDefault(), this.choose(i)) },
      element("span", { class: "name", dir: "auto", text: shortened(pathText(node.path, this.sep || "/")) }),
      element("small", { text: `${fixed(node.mean)} · ${plural(node.decisions, this.source.counted)}${node.retired ? " · retired" : ""}` }),
    );
  }

  mark() {
    [...this.list.children].forEach((one, i) => setAttribute(one, "aria-selected", String(i === this.at)));
    setAttribute(this.field, "aria-activedescendant", this.at < 0 ? null : `found-${this.at}`);
    this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
  }

  pressed(event) {
    if (event.key === "Escape") {
      event.stopPropagation();
      if (this.list.hidden) this.field.value = "";
      this.close();
    } else if (event.key === "Enter") {
      if (this.at >= 0 && !this.list.hidden) this.choose(this.at);
      else this.search();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (this.found.length) this.at = (this.at + step + this.found.length) % this.found.length;
      this.mark();
    } else return;
    event.preventDefault();
  }

  choose(i) {
    const node = this.found[i];
    this.close();
    this.lookAt(node.path, false);
  }

  close() {
    this.list.hidden = true;
    this.at = -1;
    setAttribute(this.field, "aria-expanded", "false");
    setAttribute(this.field, "aria-activedescendant", null);
  }
}
