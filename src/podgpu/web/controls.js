// Tabs, search, filters and sorting. All of it is in the address.

import { FACETS, FROM_STORE, SORTS, STATES, VIEWS } from "./address.js";
import { fill, h, shortModel, write } from "./dom.js";
import { partOf } from "./numbers.js";

const CHOICES_MS = 4000; // between two updates of the choices
const TITLES = { namespace: "Namespace", workload: "Workload", team: "Team", node: "Node", model: "Model", state: "State" };

export class Controls {
  constructor(address) {
    this.address = address;
    this.tabs = Object.entries(VIEWS).map(([view, name]) => h("a", { "data-view": view }, name));
    this.search = h("input", { type: "search", placeholder: "Search pods, nodes, models   /", "aria-label": "Search", autocomplete: "off", spellcheck: "false", oninput: () => address.go({ q: this.search.value }, { replace: true }) });
    this.selects = Object.fromEntries(FACETS.map((name) => [name, h("select", { "aria-label": TITLES[name], onchange: (event) => address.go({ [name]: event.target.value }) })]));
    this.sort = h("select", { "aria-label": "Order", onchange: (event) => address.go({ sort: event.target.value }) });
    this.clear = h("button", { type: "button", onclick: () => address.go({ q: "", cells: "", ...Object.fromEntries(FACETS.map((name) => [name, ""])) }) }, "Clear");
    this.count = h("span", { class: "dim count" });
    this.filters = h("div", { class: "filters" }, ...Object.values(this.selects), this.sort, this.clear, this.count);
    this.element = h(
      "div",
      { class: "controls" },
      h("nav", { "aria-label": "Views" }, ...this.tabs),
      this.search,
      this.filters,
    );
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
      tab.hidden = { bill: !model.hasStore, fit: !model.hasStore, nodes: model.nodes.length < 2, teams: !model.labels.length, pending: !model.pending.length && !isOn }[tab.dataset.view] ?? false;
    }
    this.search.hidden = this.filters.hidden = FROM_STORE.includes(address.view);
    if (FROM_STORE.includes(address.view)) return;
    if (this.search.value !== address.q && document.activeElement !== this.search) this.search.value = address.q;
    const sign = FACETS.map((name) => address[name]).join("\n");
    if (sign !== this.sign || Date.now() - this.at > CHOICES_MS) {
      [this.sign, this.at] = [sign, Date.now()];
      for (const [name, select] of Object.entries(this.selects)) this.#choices(name, select, model);
    }
    fill(this.sort, Object.entries(SORTS[address.view]).map(([key, name]) => [key, `Sort: ${name}`]), address.sort);
    this.clear.hidden = !address.isFiltered;
    write(this.count, address.isFiltered ? partOf("gpus", shown, model.known) : "");
  }

  #choices(name, select, model) {
    const value = this.address[name];
    // Teams are chosen from their rows.
    const choices = new Set(name === "team" ? [] : model.choices(name));
    if (value) choices.add(value);
    select.hidden = choices.size < 2 && !value;
    const titleOf = { state: (state) => STATES[state], model: shortModel }[name];
    fill(select, [["", `${TITLES[name]}: all`], ...[...choices].sort().map((choice) => [choice, titleOf?.(choice) ?? choice])], value);
  }
}
