// Elements of the page. Whatever is shown goes through textContent, so that names are text, whatever is in them.

export function byId(id) {
  return document.getElementById(id);
}

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

// Text is set only where it differs, so that what somebody has selected, and what a reader has said, stays.
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

export function setAttribute(target, name, value) {
  if (value === null) target.removeAttribute(name);
  else if (target.getAttribute(name) !== String(value)) target.setAttribute(name, value);
}

// Rows go by a key: those that stay are changed in place, so that nothing jumps and the focus stays.
export function updateRows(parent, rows, keyOf, make, change) {
  const known = new Map([...parent.children].map((one) => [one.dataset.key, one]));
  let before = null;
  for (const row of rows) {
    const key = String(keyOf(row));
    let one = known.get(key);
    if (one) known.delete(key);
    else {
      one = make(row);
      one.dataset.key = key;
    }
    change(one, row);
    const next = before ? before.nextSibling : parent.firstChild;
    if (one !== next) parent.insertBefore(one, next);
    before = one;
  }
  for (const one of known.values()) one.remove();
}

export function choiceButtons(group, choices, chosen, choose) {
  updateRows(
    group,
    choices,
    ([value]) => value,
    ([value, label]) => element("button", { type: "button", class: "choice", text: label, onclick: () => choose(value) }),
    (button, [value]) => setAttribute(button, "aria-pressed", String(value === chosen)),
  );
}

// The states of a panel look different: loading, empty, failed; what is there is shown once it is ready.
export function setState(panel, state, text = "") {
  setAttribute(panel, "data-state", state);
  const message = panel.querySelector(".message");
  message.hidden = !text;
  setText(message, text);
}
