// Tabs, search, filters and sorting. All of it is in the address.

import { FACETS, FROM_STORE, SORTS, STATES, VIEWS } from "./address.js";
import { fill, h, shortModel, write } from "./dom.js";
import { partOf } from "./numbers.js";

const CHOICES_MS = 4000; // between two updates of the choices
const TITLES = { namespace: "Namespace", workload: "Workload", team: "Team", node: "Node", model: "Model", state: "State" };

/** On a narrow page, tabs leave out their first word. */
const shortened = (name) => (name.startsWith("By ") ? [h("span", { class: "by" }, "By "), name.slice(3)] : [name]);

export class Controls {
  /** `onSearch` is called after each letter, with whether there are any. */
  constructor(address, onSearch) {
    this.address = address;
    this.tabs = Object.entries(VIEWS).map(([view, name]) => h("a", { "data-view": view }, ...shortened(name)));
    this.search = h("input", { type: "search", placeholder: "Search pods, nodes  /", "aria-label": "Search", autocomplete: "off", spellcheck: "false", oninput: () => (address.go({ q: this.search.value }, { replace: true }), onSearch(this.search.value !== "")) });
    this.selects = Object.fromEntries(FACETS.map((name) => [name, h("select", { "aria-label": TITLES[name], onchange: (event) => address.go({ [name]: event.target.value }) })]));
    this.sort = h("select", { "aria-label": "Order", onchange: (event) => address.go({ sort: event.target.value }) });
    this.clear = h("button", { type: "button", onclick: () => address.go({ q: "", cells: "", problem: "", ...Object.fromEntries(FACETS.map((name) => [name, ""])) }) }, "Clear");
    this.count = h("span", { class: "dim count" });
    this.filters = h("div", { class: "filters" }, ...Object.values(this.selects), this.sort);
    // Narrow pages fold the menus away.
    this.fold = h("button", { type: "button", class: "menus", "aria-expanded": "false", onclick: () => this.#unfold() }, "Filter");
    this.element = h(
      "div",
      { class: "controls" },
      h("nav", { "aria-label": "Views" }, ...this.tabs),
      this.search,
      this.fold,
      this.filters,
      h("div", { class: "picked" }, this.clear, this.count),
    );
  }

  #unfold() {
    const isOpen = this.element.classList.toggle("unfolded");
    this.fold.setAttribute("aria-expanded", isOpen);
  }

  focus() {
    this.search.focus();
    this.search.select();
  }

  draw(model, shown) {
    const { address } = this;
    for (const tab of this.tabs) {
      const isOn = tab.dataset.view === address.view;
      tab.setAttribute("href", address.link({ view: tab.dataset.view, sort: "" }));
      if (isOn) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
      const isUnseen = { bill: !model.hasStore, fit: !model.hasStore, problems: !isOn, nodes: model.nodes.length < 2, teams: !model.labels.length };
      tab.hidden = { ...isUnseen, pending: !model.pending.length && !isOn }[tab.dataset.view] ?? false;
    }
    const isStored = FROM_STORE.includes(address.view);
    this.search.hidden = this.filters.hidden = this.fold.hidden = this.clear.parentElement.hidden = isStored;
    if (isStored) return;
    if (this.search.value !== address.q && document.activeElement !== this.search) this.search.value = address.q;
    const sign = FACETS.map((name) => address[name]).join("\n");
    if (sign !== this.sign || Date.now() - this.at > CHOICES_MS) {
      [this.sign, this.at] = [sign, Date.now()];
      for (const [name, select] of Object.entries(this.selects)) this.#choices(name, select, model);
    }
    fill(this.sort, Object.entries(SORTS[address.view]).map(([key, name]) => [key, `Sort: ${name}`]), address.sort);
    this.sort.hidden = Object.keys(SORTS[address.view]).length < 2;
    this.clear.hidden = !address.isFiltered && !address.problem;
    write(this.count, address.isFiltered ? partOf("gpus", shown, model.known) : "");
  }

  #choices(name, select, model) {
    const value = this.address[name];
    // Teams are chosen from their rows.
    const choices = new Set(name === "team" ? [] : model.choices(name));
    if (value) choices.add(value);
    select.hidden = choices.size < 2 && !value;
    const titleOf = { state: (state) => STATES[state], model: shortModel }[name];
    fill(select, [["", TITLES[name]], ...[...choices].sort().map((choice) => [choice, titleOf?.(choice) ?? choice])], value);
  }
}
