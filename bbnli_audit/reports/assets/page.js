"use strict";
(() => {
  const LETTERS = ["E", "N", "C"];
  const PAGE_SIZE = 50;

  const data = JSON.parse(document.getElementById("data").textContent);
  const LABELS = Object.fromEntries(LETTERS.map((letter, n) => [letter, data.answers[n]]));
  const OUTCOMES = data.filters;
  const lowerTexts = () => (data.lowerTexts ??= data.texts.map((text) => text.toLowerCase()));
  const state = { isRevealed: false, isPrinting: false };
  let nextId = 0;

  /** Makes an element. Everything that comes from the data goes in as text. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== null) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  function makeButton(text, attributes, onClick) {
    const button = make("button", { type: "button", ...attributes }, text);
    button.addEventListener("click", onClick);
    return button;
  }

  class Pair {
    constructor(n) {
      const columns = data.pairs;
      this.n = n;
      this.id = columns.id[n];
      this.subtopic = columns.subtopic[n];
      this.cluster = data.clusters[columns.cluster[n]];
      this.cell = data.cells[columns.cell[n]] ?? "";
      this.outcome = data.outcomes[columns.cell[n]] ?? "not read";
      this.before = data.cells[columns.before[n]] ?? "";
      this.probabilities = columns.probabilities.slice(6 * n, 6 * n + 6);
      this.texts = columns.texts.slice(4 * n, 4 * n + 4);
      this.wrongness = 20000 - this.probabilities[1] - this.probabilities[4];
      const words = [this.id, this.cluster, this.outcome, data.subtopics[this.subtopic], this.label(0), this.label(1)];
      this.words = words.join(" ").toLowerCase();
    }

    /** Which of the three answers a side got. A pair without a cell was not read on one side at least. */
    answer(side) {
      if (this.cell) return LETTERS.indexOf(this.cell[side]);
      const shares = this.probabilities.slice(3 * side, 3 * side + 3);
      return shares.indexOf(Math.max(...shares));
    }

    /** Three equal shares stand for an answer that could not be read, where all three answers are taken. */
    label(side) {
      const [first, ...others] = this.probabilities.slice(3 * side, 3 * side + 3);
      const isUnread = !this.cell && others.every((share) => share === first);
      return isUnread ? "not read" : data.answers[this.answer(side)];
    }

    /** The probability of the answer or, where nothing was asked, the side's share of the two likelihoods. */
    probability(side) {
      return this.probabilities[3 * side + (data.hasTask ? this.answer(side) : 0)];
    }
  }

  const byText = (get) => (a, b) => (get(a) < get(b) ? -1 : get(a) > get(b) ? 1 : 0);
  const byNumber = (get) => (a, b) => get(a) - get(b);
  const byAnswer = (side) => (a, b) =>
    a.answer(side) - b.answer(side) || b.probability(side) - a.probability(side);

  const COLUMNS = [
    { title: "Pair", compare: byText((pair) => pair.id), cell: (pair) => make("code", {}, pair.id) },
    {
      title: "Subtopic",
      isShown: (table) => table.isAll,
      compare: byNumber((pair) => pair.subtopic),
      cell: (pair) => data.subtopics[pair.subtopic],
    },
    { title: "Cluster", compare: byText((pair) => pair.cluster), cell: (pair) => make("code", {}, pair.cluster) },
    { title: "Pro side", compare: byAnswer(0), cell: (pair) => answerCell(pair, 0) },
    { title: "Anti side", compare: byAnswer(1), cell: (pair) => answerCell(pair, 1) },
    {
      title: "Outcome",
      compare: byNumber((pair) => OUTCOMES.indexOf(pair.outcome)),
      cell: (pair) => make("span", { class: `key ${pair.outcome}` }, pair.outcome),
    },
    {
      title: "Before",
      isShown: () => data.hasBaseline,
      compare: byText((pair) => pair.before || "~"),
      cell: (pair) => (pair.before ? `${LABELS[pair.before[0]]} / ${LABELS[pair.before[1]]}` : "–"),
    },
  ];

  function answerCell(pair, side) {
    const share = (pair.probability(side) / 10000).toFixed(2);
    return make("span", {}, `${pair.label(side)} `, make("span", { class: "muted" }, share));
  }

  /** A table of pairs with search, filters, sorting and pages. Only the rows of one page are in the document. */
  class PairTable {
    constructor(host, pairs) {
      this.host = host;
      this.pairs = pairs;
      this.isAll = host.dataset.subtopic === "all";
      this.columns = COLUMNS.filter((column) => !column.isShown || column.isShown(this));
      this.filter = { query: "", outcome: "", cell: "", isChanged: false };
      this.sort = { column: COLUMNS.find((column) => column.title === "Outcome"), direction: 1 };
      this.page = 0;
      this.opened = new Set();
      this.build();
      this.update();
    }

    build() {
      this.status = make("p", { role: "status", class: "status" });
      this.body = make("tbody");
      const label = `${this.host.dataset.name}, table`;
      this.region = make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label });
      this.region.append(make("table", {}, this.buildHead(), this.body));
      this.host.append(this.buildControls(), this.status, this.region, this.buildPager());
    }

    buildControls() {
      const search = make("input", { type: "search", autocomplete: "off", spellcheck: "false" });
      search.addEventListener("input", () => this.change({ query: search.value.trim().toLowerCase() }));
      const choices = ["", ...OUTCOMES].map((name) => make("option", { value: name }, name || "all"));
      const outcome = make("select", { autocomplete: "off" }, ...choices);
      outcome.addEventListener("change", () => this.change({ outcome: outcome.value }));
      this.clear = makeButton("", { class: "chip", hidden: "" }, () => this.chooseCell(""));
      const controls = make("div", { class: "controls", role: "group", "aria-label": `${this.host.dataset.name}, filters` });
      controls.append(make("label", {}, "Search ", search), make("label", {}, "Outcome ", outcome));
      if (data.hasBaseline) controls.append(this.buildChangedBox());
      controls.append(this.clear);
      return controls;
    }

    buildChangedBox() {
      const box = make("input", { type: "checkbox", autocomplete: "off" });
      box.addEventListener("change", () => this.change({ isChanged: box.checked }));
      return make("label", { class: "check" }, box, " Changed since the baseline only");
    }

    buildHead() {
      const row = make("tr");
      for (const column of this.columns) {
        const arrow = make("span", { "aria-hidden": "true", class: "arrow" });
        const button = makeButton(column.title, { class: "sort" }, () => this.sortBy(column));
        button.append(arrow);
        row.append(make("th", { scope: "col" }, button));
      }
      row.append(make("th", { scope: "col" }, "Sentences"));
      this.head = row;
      return make("thead", {}, row);
    }

    buildPager() {
      this.previous = makeButton("Previous", {}, () => this.turn(-1));
      this.next = makeButton("Next", {}, () => this.turn(1));
      return make("div", { class: "pager", role: "group", "aria-label": `${this.host.dataset.name}, pages` }, this.previous, this.next);
    }

    change(changes) {
      Object.assign(this.filter, changes);
      this.page = 0;
      this.update();
    }

    chooseCell(cell) {
      this.change({ cell });
      this.clear.hidden = !cell;
      this.clear.textContent = cell ? `Only ${LABELS[cell[0]]} / ${LABELS[cell[1]]}: show all` : "";
      const section = this.host.closest("details");
      for (const button of section.querySelectorAll(".matrix button")) {
        button.setAttribute("aria-pressed", String(button.dataset.cell === cell));
      }
    }

    sortBy(column) {
      const isSame = this.sort.column === column;
      this.sort = { column, direction: isSame ? -this.sort.direction : 1 };
      this.page = 0;
      this.update();
    }

    turn(step) {
      if (step < 0 ? this.page === 0 : (this.page + 1) * PAGE_SIZE >= this.found.length) return;
      this.page += step;
      this.render();
      this.region.scrollIntoView({ block: "nearest" });
    }

    /** Filters and sorts. Among equals the pair that is wrong with most confidence comes first. */
    update() {
      const { column, direction } = this.sort;
      this.found = this.pairs.filter(this.matcher());
      this.found.sort((a, b) => direction * column.compare(a, b) || b.wrongness - a.wrongness || a.n - b.n);
      this.render();
    }

    matcher() {
      const { query, outcome, cell, isChanged } = this.filter;
      const hasText = state.isRevealed && query ? lowerTexts().map((text) => text.includes(query)) : null;
      return (pair) =>
        (!outcome || pair.outcome === outcome) &&
        (!cell || pair.cell === cell) &&
        (!isChanged || pair.before !== "") &&
        (!query || pair.words.includes(query) || (hasText !== null && pair.texts.some((n) => hasText[n])));
    }

    render() {
      const first = this.page * PAGE_SIZE;
      const shown = this.found.slice(first, first + PAGE_SIZE);
      this.opened.clear();
      this.body.replaceChildren(...shown.flatMap((pair) => this.makeRows(pair)));
      const total = this.found.length.toLocaleString("en");
      this.status.textContent = shown.length
        ? `${(first + 1).toLocaleString("en")}–${(first + shown.length).toLocaleString("en")} of ${total} pairs`
        : "No pair matches.";
      this.previous.setAttribute("aria-disabled", String(this.page === 0));
      this.next.setAttribute("aria-disabled", String(first + PAGE_SIZE >= this.found.length));
      this.showSorting();
    }

    showSorting() {
      this.columns.forEach((column, n) => {
        const isSorted = column === this.sort.column;
        const header = this.head.children[n];
        header.querySelector(".arrow").textContent = isSorted ? (this.sort.direction > 0 ? " ↑" : " ↓") : "";
        if (isSorted) header.setAttribute("aria-sort", this.sort.direction > 0 ? "ascending" : "descending");
        else header.removeAttribute("aria-sort");
      });
    }

    makeRows(pair) {
      const row = make("tr", {}, ...this.columns.map((column) => make("td", {}, column.cell(pair))));
      const button = makeButton("show", { "aria-expanded": "false", "aria-label": `Sentences of pair ${pair.id}` }, () =>
        this.toggleTexts(pair, row, button),
      );
      row.append(make("td", {}, button));
      if (!state.isRevealed) return [row];
      return [row, this.openTexts(pair, button)];
    }

    toggleTexts(pair, row, button) {
      if (this.opened.delete(pair.n)) {
        row.nextElementSibling.remove();
        button.setAttribute("aria-expanded", "false");
        button.textContent = "show";
      } else {
        row.after(this.openTexts(pair, button));
      }
    }

    openTexts(pair, button) {
      const id = `texts-${nextId++}`;
      this.opened.add(pair.n);
      button.setAttribute("aria-expanded", "true");
      button.setAttribute("aria-controls", id);
      button.textContent = "hide";
      const cell = make("td", { colspan: String(this.columns.length + 1) }, makeSide(pair, 0), makeSide(pair, 1));
      return make("tr", { class: "texts", id }, cell);
    }
  }

  function makeSide(pair, side) {
    const [premise, hypothesis] = pair.texts.slice(2 * side, 2 * side + 2).map((n) => data.texts[n]);
    const shares = pair.probabilities.slice(3 * side, 3 * side + 3).map((share) => (share / 10000).toFixed(4));
    const told = data.hasTask
      ? data.answers.map((answer, n) => `${answer} ${shares[n]}`).join(", ")
      : `${shares[0]} of the two likelihoods`;
    return make(
      "dl",
      {},
      make("dt", {}, side ? "Anti side" : "Pro side"),
      make("dd", { dir: "auto" }, premise),
      make("dd", { dir: "auto", class: "hypothesis" }, make("span", { "aria-hidden": "true" }, "→ "), hypothesis),
      make("dd", { class: "muted" }, told),
    );
  }

  const tables = new Map();
  let allPairs = null;

  function openTable(host) {
    if (tables.has(host)) return tables.get(host);
    allPairs ??= data.pairs.id.map((_, n) => new Pair(n));
    const wanted = host.dataset.subtopic;
    const pairs = wanted === "all" ? allPairs : allPairs.filter((pair) => pair.subtopic === Number(wanted));
    const table = new PairTable(host, pairs);
    tables.set(host, table);
    return table;
  }

  function describeWord([word, counted, n, countedRest, nRest]) {
    return `${word} (${counted} of ${n} samples with it, ${countedRest} of ${nRest} without)`;
  }

  function showWords(element) {
    const { wording, subtopic, measure } = element.dataset;
    const found = wording ? data.wording[wording] : data.words[Number(subtopic)][measure].map(describeWord);
    element.textContent = state.isRevealed ? found.join("; ") : `${found.length}, hidden like the sentences`;
  }

  function reveal(isRevealed) {
    state.isRevealed = isRevealed;
    document.getElementById("reveal").setAttribute("aria-pressed", String(isRevealed));
    for (const table of tables.values()) table.update();
    document.querySelectorAll(".words").forEach(showWords);
  }

  function openTarget() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
  }

  /** Opens the subtopics on paper and leaves them as they were afterwards. */
  function followPrinting() {
    let opened = [];
    matchMedia("print").addEventListener("change", ({ matches }) => {
      state.isPrinting = matches;
      if (matches) opened = [...document.querySelectorAll("details.subtopic:not([open])")];
      for (const details of opened) details.open = matches;
    });
  }

  for (const host of document.querySelectorAll(".pairs")) {
    const details = host.closest("details");
    details.addEventListener("toggle", (event) => {
      if (event.target === details && details.open && !state.isPrinting) openTable(host);
    });
    for (const button of details.querySelectorAll(".matrix button")) {
      button.addEventListener("click", () => {
        const isChosen = button.getAttribute("aria-pressed") === "true";
        openTable(host).chooseCell(isChosen ? "" : button.dataset.cell);
      });
    }
  }
  document.getElementById("no-script").remove();
  document.getElementById("reveal").addEventListener("click", () => reveal(!state.isRevealed));
  addEventListener("hashchange", openTarget);
  openTarget();
  followPrinting();
})();
