// Where one is, as the address has it behind the #: the experiment, the open node, a decision, the list and the range.

const NAMES = ["experiment", "node", "decision", "list", "minutes"];
const KEPT_KEY = "bough-key";

export function readPlace() {
  const found = new URLSearchParams(location.hash.slice(1));
  const place = {};
  for (const name of NAMES) if (found.has(name)) place[name] = found.get(name);
  return place;
}

export function writePlace(place, { isNew = false } = {}) {
  const found = new URLSearchParams();
  for (const name of NAMES) if (place[name]) found.set(name, place[name]);
  const hash = `#${found}`;
  if (hash === location.hash || (hash === "#" && !location.hash)) return;
  history[isNew ? "pushState" : "replaceState"](null, "", hash);
}

// A key comes behind the #, is kept for this tab, and leaves the address, so that nobody copies it by mistake.
export function takeKey() {
  const found = new URLSearchParams(location.hash.slice(1));
  const key = found.get("key");
  if (key === null) return false;
  keepKey(key);
  found.delete("key");
  history.replaceState(null, "", `#${found}`);
  return true;
}

export function keepKey(key) {
  sessionStorage.setItem(KEPT_KEY, key);
}

export function keptKey() {
  return sessionStorage.getItem(KEPT_KEY);
}
