// What nodes are called on the page.

const WHOLE = "all actions";
const LONGEST = 120;

// The part of a name that its parent's does not say: "kitchen" of "home/kitchen" in "home".
export function ownPart(name, parent, sep) {
  const text = String(name);
  if (parent === undefined || parent === null || parent === "") return text === "" ? WHOLE : text;
  const before = `${parent}${sep}`;
  return text.startsWith(before) && text.length > before.length ? text.slice(before.length) : text;
}

export function shortened(text) {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

export function pathText(path, sep) {
  return path.slice(1).map((name, i) => ownPart(name, path[i], sep)).join(" › ") || WHOLE;
}
