// Elements. Text is only ever set as text: names may be hostile.

const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Characters that turn the direction of writing could make a name read as another: they are shown as what they are. */
const visible = (text) => (typeof text === "string" ? text.replace(TURNS, "\ufffd") : text);

/** Make an element. Attributes that are null or false are left out; children may be text. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) hear(made, name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined).map(visible));
  return made;
}

/** Listen in a way that `morph` can pass on: who hears may be another later. */
function hear(element, type, listener) {
  element.heard ??= {};
  element.heard[type] = listener;
  element.addEventListener(type, (event) => element.heard[type](event));
}

/**
 * Make the parent have exactly these children, in this order. What stays is not touched: it keeps focus, selection and
 * scroll. What must move gets the focus back.
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

/** Make an element like another that was made anew, and touch only what differs. Children with a `data-key` keep it. */
export function morph(from, to) {
  for (const { name } of [...from.attributes]) if (!to.hasAttribute(name)) from.removeAttribute(name);
  for (const { name, value } of to.attributes) if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  if (to.heard) Object.assign(from.heard, to.heard);
  // What it holds is drawn elsewhere.
  if (to.dataset?.own !== undefined) return;
  const keyed = new Map([...from.childNodes].filter((child) => child.dataset?.key).map((child) => [child.dataset.key, child]));
  const plain = [...from.childNodes].filter((child) => !child.dataset?.key);
  arrange(from, [...to.childNodes].map((child) => {
    const own = child.dataset?.key ? keyed.get(child.dataset.key) : plain.shift();
    if (!own || !isAlike(own, child)) return child;
    if (own.nodeType !== Node.ELEMENT_NODE) own.data !== child.data && (own.data = child.data);
    else morph(own, child);
    return own;
  }));
}

const isAlike = (one, other) => one.nodeName === other.nodeName && Object.keys(one.heard ?? {}).join() === Object.keys(other.heard ?? {}).join();

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Put text into an element, without touching it if nothing changed. */
export function write(element, text) {
  const shown = visible(text);
  if (element.textContent !== shown) element.textContent = shown;
}

/** Put text into an element that may be too narrow for it: the title has all of it. */
export function writeWhole(element, text) {
  write(element, text);
  if (element.title !== element.textContent) element.title = element.textContent;
}

export const known = (value) => value !== null && value !== undefined;

export const shortModel = (model) => model.replace(/^NVIDIA\s+/, "") || "GPU";

/** Make the options anew only if they changed: an open menu must not close under the hand. */
export function fill(select, options, value) {
  const sign = JSON.stringify(options);
  if (select.dataset.sign !== sign) {
    select.dataset.sign = sign;
    select.replaceChildren(...options.map(([key, name]) => h("option", { value: key }, name)));
  }
  if (select.value !== value) select.value = value;
}

/** A length for CSS: a part of the whole. */
export const cssPart = (part) => 100 * part + "%";
