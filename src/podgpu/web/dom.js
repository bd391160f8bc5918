// Makes and updates elements. Text is always set as text: names may be hostile.

const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Characters that change the direction of writing could make a name look like another, so they are replaced. */
export const visible = (text) => (typeof text === "string" ? text.replace(TURNS, "\ufffd") : text);

/** Make an element. Attributes that are null or false are left out; children may be text. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) listen(made, name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined).map(visible));
  return made;
}

/** Add a listener that `morph` can replace. */
function listen(element, type, listener) {
  element.listeners ??= {};
  element.listeners[type] = listener;
  element.addEventListener(type, (event) => element.listeners[type](event));
}

/**
 * Make the parent have exactly these children, in this order. Those that stay keep focus, selection and scroll. One that
 * has to move gets the focus back.
 */
export function arrange(parent, wanted) {
  const held = document.activeElement;
  const stays = new Set(wanted);
  for (const child of [...parent.childNodes]) if (!stays.has(child)) child.remove();
  let next = parent.firstChild;
  for (const child of wanted) {
    if (child === next) next = next.nextSibling;
    else parent.insertBefore(child, next);
  }
  if (held !== document.activeElement && held?.isConnected) held.focus({ preventScroll: true });
}

/** Make an element like a newer one, and change only what differs. Children with the same `data-key` correspond. */
export function morph(from, to) {
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name)) from.removeAttribute(name);
  for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  if (to.listeners) Object.assign(from.listeners, to.listeners);
  // Its children are drawn elsewhere.
  if (to.dataset?.own !== undefined) return;
  const keyed = new Map([...from.childNodes].filter((child) => child.dataset?.key).map((child) => [child.dataset.key, child]));
  const plain = [...from.childNodes].filter((child) => !child.dataset?.key);
  arrange(from, [...to.childNodes].map((child) => {
    const old = child.dataset?.key ? keyed.get(child.dataset.key) : plain.shift();
    if (!old || !isAlike(old, child)) return child;
    if (old.nodeType !== Node.ELEMENT_NODE) old.data !== child.data && (old.data = child.data);
    else morph(old, child);
    return old;
  }));
}

const isAlike = (one, other) => one.nodeName === other.nodeName && Object.keys(one.listeners ?? {}).join() === Object.keys(other.listeners ?? {}).join();

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

/** Put text into an element, unless it is there already. */
export function write(element, text) {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
}

/** Put text into an element that may be too narrow for it, and into its title. */
export function writeWhole(element, text) {
  write(element, text);
  if (element.title !== element.textContent) element.title = element.textContent;
}

export const known = (value) => value !== null && value !== undefined;

export const shortModel = (model) => model.replace(/^NVIDIA\s+/, "") || "GPU";

/** Replace the children only if their data has changed: focus and selection stay, and an open menu does not close. */
export function renew(element, data, childrenOf) {
  const sign = JSON.stringify(data);
  if (element.dataset.sign === sign) return;
  element.dataset.sign = sign;
  element.replaceChildren(...childrenOf(data));
}

/** Set the options of a menu, and which is chosen. */
export function fill(select, options, value) {
  renew(select, options, () => options.map(([key, name]) => h("option", { value: key }, name)));
  if (select.value !== value) select.value = value;
}

/** A part of the whole, as a length for CSS. */
export const cssPart = (part) => 100 * part + "%";
