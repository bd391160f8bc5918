// podgpu's page: views of one document, the bill and advice of a store, and a page for each pod and each GPU.

import { Address, FACETS, FROM_STORE, filterOf, focusAgain } from "./address.js";
import { Alerts } from "./alerts.js";
import { LatestAnswer } from "./ask.js";
import { Banners } from "./banners.js";
import { Bill } from "./bill.js";
import { Colours } from "./colours.js";
import { actions } from "./commands.js";
import { choosing, comparePage } from "./compare.js";
import { Controls } from "./controls.js";
import { copyOnClick } from "./copy.js";
import { h, morph, renew, write } from "./dom.js";
import { Feed } from "./feed.js";
import { Files } from "./files.js";
import { Fit } from "./fit.js";
import { Fleet } from "./fleet.js";
import { gpuPage } from "./gpu.js";
import * as byGpu from "./gpus.js";
import { History } from "./history.js";
import { idleRows } from "./idle.js";
import { Badge, KeyHelp, Legend, moveCard } from "./legend.js";
import { List } from "./list.js";
import { HEADS, NAMES, VIEWS, emptyNote } from "./lists.js";
import { Model } from "./model.js";
import { moment, zone } from "./numbers.js";
import { Paper } from "./paper.js";
import { Pending } from "./pending.js";
import { Evidence, podPage } from "./pod.js";
import { problemRows } from "./problems.js";
import { Rows } from "./rows.js";
import { labelOf } from "./shades.js";
import { Timeline } from "./timeline.js";
import { Header, Loading, Tiles } from "./top.js";
import { Tooltip } from "./tooltip.js";
import { Use } from "./use.js";
import { Waste } from "./waste.js";
import { workRows } from "./workloads.js";

const QUIET_MS = 150; // from the last part of a change until it is drawn,
const LATEST_MS = 800; // but no longer from the first part

class App {
  constructor(root) {
    this.model = new Model();
    this.history = new History();
    this.colours = new Colours();
    this.rows = new Rows(() => this.draw());
    this.evidence = new Evidence(() => this.draw());
    this.past = new LatestAnswer(() => this.draw());
    this.hour = new LatestAnswer(() => this.draw());
    this.pointer = {};
    this.address = new Address((left) => this.go(left));
    this.header = new Header();
    const link = (changes) => this.address.link({ pod: "", gpu: "", ...changes });
    const linkAll = (changes) => this.address.link({ ...blank(), ...changes });
    this.tiles = new Tiles(linkAll);
    this.alerts = new Alerts(linkAll);
    this.waste = new Waste(linkAll);
    this.use = new Use(link);
    this.answers = h("div", { class: "answers" }, this.alerts.element, this.waste.element, this.use.element);
    this.controls = new Controls(this.address, (isSought) => ((this.isSought = isSought), this.seek()));
    this.fleet = new Fleet(this.address);
    this.legend = new Legend();
    this.badge = new Badge();
    this.bill = new Bill(this.address, () => this.draw());
    this.fit = new Fit(() => this.draw());
    this.banners = new Banners();
    this.pending = new Pending(() => this.asked("rows?by=pending"));
    this.files = new Files(() => ({ view: this.address.view, kinds: VIEWS[this.address.view].NEEDS ?? ["gpus"], items: this.list.items, at: this.isPast ? this.address.at : "" }));
    this.controls.filters.append(this.files.element);
    this.choosing = h("div");
    this.actions = h("div");
    this.heads = h("div", { class: "heads", "aria-hidden": "true" });
    this.empty = h("p", { class: "empty", hidden: true });
    this.pod = h("div", { hidden: true });
    const tools = {
      colours: this.colours,
      at: () => this.sizes,
      link,
      fits: (tenant) => this.filter.fits(tenant),
    };
    const rows = { ...tools, link: (id) => link({ pod: id }), linkGpu: (uuid) => link({ gpu: uuid }) };
    this.bars = byGpu.gpuRows({ ...rows, at: () => byGpu.measure(this.pod.clientWidth - 2), fits: () => true })();
    this.list = new List(
      {
        node: byGpu.nodeRow,
        gpu: byGpu.gpuRows(rows),
        work: workRows(tools),
        idle: idleRows(tools),
        problem: problemRows(tools),
      },
      NAMES.gpus,
    );
    this.sheet = h("section", { class: "sheet", "aria-label": "List" }, this.heads, this.list.element, this.empty);
    this.overview = h("div", {}, this.choosing, this.tiles.element, this.answers, this.fleet.element, this.controls.element, this.actions, this.sheet, this.legend.element, this.bill.element, this.fit.element, this.pending.element);
    this.foot = h("footer", { class: "dim" });
    this.paper = new Paper();
    this.loading = new Loading();
    this.timeline = new Timeline({
      colours: this.colours,
      link: (at) => this.address.link({ at: String(at) }),
      facts: () => ({ isCluster: this.model.isCluster, node: this.nodeShown }),
      onMoment: (at, how) => this.address.go({ at: at ? String(at) : "" }, how),
      onXid: ({ at, uuid }) => this.address.go({ at: String(Math.ceil(at + this.model.interval)), gpu: uuid, pod: "" }),
    });
    this.overview.hidden = true;
    root.replaceChildren(h("a", { class: "skip", href: "#content" }, "Skip to the list"), this.header.element, this.paper.head, this.banners.element, this.timeline.element, h("main", { id: "content", tabindex: "-1" }, this.loading.element, this.overview, this.pod), this.paper.foot, this.foot);
    copyOnClick(root);
    new Tooltip(root);
    this.help = new KeyHelp(root);
    addEventListener("click", (event) => this.follow(event));
    addEventListener("keydown", (event) => this.key(event));
    addEventListener("beforeprint", () => this.model.document && this.paper.draw(this.model, this.address, this.list, this.total));
    new ResizeObserver(() => this.resize()).observe(root);
    setInterval(() => this.tick(), 1000);
    this.state = "";
    this.feed = new Feed("api/v1/events", { onDocument: (document_) => this.take(document_), onState: (state) => ((this.state = state), this.tick()), onUser: (user) => this.header.greet(user), onPast: (answer) => this.takePast(answer) });
    this.turn();
  }

  /** A link within the page only changes its address. */
  follow(event) {
    const target = event.target instanceof Element ? event.target.closest("a[href]") : null;
    if (!target || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const to = new URL(target.href);
    if (to.origin !== location.origin || to.pathname !== location.pathname || to.hash) return;
    event.preventDefault();
    this.address.push(to);
    this.isSought = Boolean(target.closest(".tiles, .answers"));
    this.go();
  }

  key(event) {
    if (event.metaKey || event.ctrlKey || event.altKey || (this.help.element.open && event.key !== "?")) return;
    if (event.target instanceof Element && event.target.closest("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const view = { g: "gpus", w: "workloads", i: "idle", b: this.model.hasStore && "bill", f: this.model.hasStore && "fit" }[event.key];
    if (event.key === "/") {
      event.preventDefault();
      const isStored = FROM_STORE.includes(this.address.view);
      if (this.detail || isStored) this.address.go({ pod: "", gpu: "", view: isStored ? "gpus" : this.address.view });
      this.controls.focus();
    } else if (event.key === "t") {
      event.preventDefault();
      this.timeline.goTo.focus();
    } else if (event.key === "?") this.help.toggle();
    else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && moveCard(event.key === "ArrowDown" ? 1 : -1)) event.preventDefault();
    else if (view) this.address.go({ view, pod: "", gpu: "", sort: "" });
    else if (event.key === "Escape" && (this.detail || this.address.compare)) this.address.go({ pod: "", gpu: "", compare: "" });
    else if (["ArrowLeft", "ArrowRight", " "].includes(event.key) && !event.target.closest("a, button, canvas, [role], [tabindex='0']")) this.timeline.key(event);
  }

  /** The pod or the GPU whose page is shown, or the two that are compared. */
  get detail() {
    return this.address.pod || this.address.gpu || (this.address.pair ? this.address.compare : "");
  }

  /** Whether the page shows a moment of the past. */
  get isPast() {
    return Boolean(this.address.at && this.model.isPast);
  }

  /** Turn to the moment in the address, or to the present. Until it is here, the page stays as it is. */
  turn() {
    const { at } = this.address;
    if (at === (this.turned ?? "")) return;
    this.turned = at;
    this.missed = null;
    if (at) this.feed.past(at);
    else if (this.live) this.model.read(this.live);
  }

  takePast({ at, news, error, isGone }) {
    if (at !== this.address.at) return;
    this.missed = error ? { error, isGone } : null;
    if (news) this.model.read(news, true);
    else if (this.live) this.model.read(this.live);
    if (this.model.document) this.show();
  }

  /** Show what the address says, from the top. */
  go(left) {
    const was = this.shown;
    this.alerts.release();
    this.turn();
    this.draw();
    if (left) {
      scrollTo(0, left.top);
      this.list.draw(true);
      focusAgain(left.focus);
    } else if (this.detail && was !== this.detail) {
      scrollTo(0, 0);
      this.pod.querySelector("h2")?.focus({ preventScroll: true });
    }
  }

  /** Take a newer document. The changes of a cluster come in parts, which are drawn together. */
  take(document_) {
    this.live = document_;
    const isElsewhere = this.address.at && !this.missed;
    if (isElsewhere || this.model.read(document_)) this.arrived = Date.now();
    if (isElsewhere && this.model.document) this.drawBanners(); // they say how long ago it was
    if (isElsewhere || !this.model.document) this.tick();
    else this.show();
  }

  show() {
    clearTimeout(this.timer);
    const now = Date.now();
    this.due ??= now + LATEST_MS;
    const wait = this.shown !== undefined && this.model.isCluster && !this.address.at ? Math.min(QUIET_MS, this.due - now) : 0;
    this.timer = setTimeout(() => requestAnimationFrame(() => (this.shown === undefined && history.state ? this.go(history.state) : this.draw())), wait);
    if (!document.documentElement.dataset.app) {
      document.documentElement.dataset.app = "on";
      document.getElementById("plain")?.remove();
      this.loading.element.remove();
    }
  }

  tick() {
    if (!this.model.document) {
      this.loading.draw(this.state, this.model.awaited);
      return;
    }
    // Its age is measured by this clock, since its arrival: the node's clock may be wrong.
    const isFresh = this.header.draw(this.model, this.isPast ? "past" : this.state, (Date.now() - this.arrived) / 1000);
    document.documentElement.classList.toggle("old", !isFresh);
  }

  resize() {
    if (this.shown && this.pod.clientWidth !== this.detailWidth) {
      this.detailWidth = this.pod.clientWidth;
      this.draw();
    }
    const width = this.list.element.clientWidth;
    if (!width || width === this.width) return;
    this.width = width;
    this.sizes = byGpu.measure(width);
    this.sizes.width = width;
    size(this.overview, this.sizes);
    if (this.model.document) this.draw();
  }

  draw() {
    if (!this.model.document) return;
    const { address, model } = this;
    this.due = undefined;
    if (model.gather()) {
      this.colours.learn(model.choices("namespace"), model.choices("pair"));
      this.history.note(model);
    }
    this.tick();
    this.drawBanners();
    this.timeline.draw(this.isPast ? model.takenAt : 0);
    this.timeline.choose(address.span, model.hasStore ? (span) => address.link({ span }) : null);
    document.title = this.title;
    this.overview.hidden = Boolean(this.detail);
    this.pod.hidden = !this.detail;
    this.shown = this.detail;
    if (this.detail) this.drawDetail();
    else this.drawOverview();
    this.drawFoot();
  }

  /** Nothing in the tab says that what was wrong then is wrong now. */
  get title() {
    const { badge, detail, isPast, model } = this;
    const now = badge.draw(isPast ? [] : model.insight.problems);
    const state = isPast ? `PAUSED ${moment(model.takenAt)} ` : model.isReplay ? "REPLAY " : "";
    return `${now}${state}${model.isDemo ? "DEMO " : ""}podgpu ${detail || model.name}`;
  }

  /** The node of the GPU or the pod whose page is shown. */
  get nodeShown() {
    const { gpu, pod } = this.address;
    const isShown = ({ uuid, slices, tenants }) => (gpu ? uuid === gpu || slices.some((slice) => slice.uuid === gpu) : tenants.some(({ id }) => id === pod));
    return this.detail ? this.model.gpus?.find(isShown)?.node.name : undefined;
  }

  drawOverview() {
    const { address, model } = this;
    const stored = { bill: this.bill, fit: this.fit, pending: this.pending }[address.view];
    this.sheet.hidden = this.legend.element.hidden = this.actions.hidden = Boolean(stored);
    this.legend.draw(this.colours);
    for (const view of [this.bill, this.fit, this.pending]) view.element.hidden = view !== stored;
    this.overview.dataset.view = address.view;
    renew(this.choosing, address.compare, () => (address.compare ? [choosing(model, address.compare, address.link({ compare: "" }))] : []));
    this.tiles.draw(model, this.history);
    this.alerts.draw(model.insight, model.isCluster);
    this.use.draw(model.insight, this.colours, address.namespace);
    if (stored) {
      this.waste.draw(model.insight);
      this.controls.draw(model);
      stored.draw(model);
    } else this.drawList();
  }

  drawList() {
    const { address, model } = this;
    if (!this.sizes) this.resize();
    if (!this.sizes) return;
    const label = labelOf(model, address.by);
    this.filter = filterOf(address, label);
    const { isFiltered } = address;
    const gpus = isFiltered ? model.gpus.filter(this.filter.isMeant) : model.gpus;
    this.controls.draw(model, gpus.filter((gpu) => !gpu.isUnknown).length);
    this.fleet.draw(model, this.filter.isMeant);
    this.list.element.setAttribute("aria-label", NAMES[address.view]);
    const view = VIEWS[address.view];
    renew(this.heads, HEADS[address.view] ?? view.headsOf(model.choices("period")), (heads) => heads.map((head) => h("span", { title: head }, head)));
    const answers = (view.NEEDS ?? []).map((by) => this.asked(`rows?by=${by}`));
    const items = answers.includes(undefined) ? [] : view.itemsOf({ gpus, isFiltered, group: address.problem, sort: address.sort, sizes: this.sizes, fits: this.filter.fits, label, link: (changes) => address.link(changes), answers });
    this.list.show(items);
    const { commands = [] } = (address.node && this.asked(`facts?node=${encodeURIComponent(address.node)}`)) || {};
    renew(this.actions, commands, () => (commands.length ? [actions(commands)] : []));
    this.total = answers[0]?.text;
    this.waste.draw(model.insight, address.view === "idle" ? answers[0]?.waste : undefined);
    this.seek();
    write(this.empty, emptyNote(this, answers, items.length, gpus.length));
    this.empty.hidden = !this.empty.textContent;
  }

  /** Put the first row on the screen that a search, a total or an answer has led to, once it is there. */
  seek() {
    const found = this.isSought ? this.list.items.findIndex(({ kind }) => kind !== "node") : -1;
    if (found < 0) return;
    this.isSought = false;
    const { top } = this.list.element.getBoundingClientRect();
    if (top + this.list.tops[found] >= 0 && top + this.list.tops[found + 1] <= innerHeight) return;
    scrollTo(0, scrollY + this.controls.element.getBoundingClientRect().top);
    this.list.draw(true);
  }

  /** What the server makes of what is shown; undefined until it is here. */
  asked(query) {
    return this.isPast ? this.rows.at(query, this.address.at) : this.rows.of(query, this.model);
  }

  drawDetail() {
    const page = this.address.pair ? this.comparePage() : this.address.pod ? this.podPage() : this.gpuPage();
    if (this.pod.dataset.of === this.detail) morph(this.pod.firstElementChild, page);
    else this.pod.replaceChildren(page);
    this.pod.dataset.of = this.detail;
    const bars = this.pod.querySelector(".bars");
    if (bars && !bars.firstElementChild) bars.append(this.bars.element);
  }

  podPage() {
    const { address, model, hour, past } = this;
    const linkPeriod = model.hasStore ? (period) => address.link({ period }) : null;
    const linkGpu = (uuid) => address.link({ pod: "", gpu: uuid, period: "" });
    return podPage(address.pod, { model, hour, past, cursor: this.isPast ? model.takenAt : 0, period: address.period, linkPeriod, linkGpu, colours: this.colours, back: this.back, more: model.isCluster && !this.isPast ? this.evidence : null, facts: this.asked(`facts?pod=${encodeURIComponent(address.pod)}`), linkCompare: address.link({ pod: "", compare: address.pod, period: "" }), linkPending: address.link({ pod: "", view: "pending" }) });
  }

  gpuPage() {
    const { address, model, hour, pointer, isPast } = this;
    const bars = (gpu) => (this.bars.update({ gpu }), h("div", { class: "box bars", "data-own": "" }));
    size(this.pod, byGpu.measure(this.pod.clientWidth - 2));
    return gpuPage(address.gpu, { model, hour, pointer, isPast, bars, back: this.back, colours: this.colours, link: (changes) => address.link(changes), more: model.isCluster && !this.isPast ? this.evidence : null, facts: this.asked(`facts?gpu=${encodeURIComponent(address.gpu)}`) });
  }

  comparePage() {
    const { address, model } = this;
    return comparePage(address.pair, { model, asked: (query) => this.asked(query), back: this.back, link: (changes) => address.link(changes), more: model.isCluster && !this.isPast ? this.evidence : null });
  }

  get back() {
    return this.address.link({ pod: "", gpu: "", period: "", compare: "" });
  }

  drawBanners() {
    const { address, isPast, live, missed, model, timeline } = this;
    this.banners.draw(model, { isPast, missed, at: Number(address.at), kept: timeline.kept, newest: live?.taken_at ?? 0, live: address.link({ at: "" }) });
  }

  drawFoot() {
    const { document: doc, isCluster, hasStore } = this.model;
    const keys = `Keys: ? all, / search, space pause, ← → a step, g GPUs, w workloads, i idle${hasStore ? ", b bill, f fit" : ""}`;
    const links = [["metrics", "Metrics"], [isCluster ? "api/v1/cluster" : "api/v1/snapshot", "JSON"], ["-/ready", "Ready"]];
    const clock = `Times are local, ${zone()}.`;
    renew(this.foot, [doc.version, keys, clock], () => [...links.map(([href, name]) => h("a", { href }, name)), h("span", {}, `podgpu ${doc.version}`), h("span", {}, clock), h("span", { class: "keys" }, keys)]);
  }
}

/** Tell the styles how wide the columns are. */
function size({ style }, sizes) {
  for (const name of ["who", "memory", "busy", "power", "name", "work"]) style.setProperty(`--${name}`, `${sizes[name] ?? 0}px`);
}

const blank = () => ({ q: "", cells: "", sort: "", pod: "", gpu: "", compare: "", ...Object.fromEntries(FACETS.map((name) => [name, ""])) });

new App(document.getElementById("app"));
