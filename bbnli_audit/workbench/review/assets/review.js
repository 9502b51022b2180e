import { Saver, fetchJson } from "./saver.js";
import { ASK, askAboutSuite, fillSuiteItem, suiteKeys } from "./suite.js";

const $ = (id) => document.getElementById(id);
const LONG_PAUSE = 5 * 60_000; // counts as a break
const NOTE_PAUSE = 700;
const RETRY = 2000;

const HYPOTHESES = {
  needsStance: (verdict) => verdict === "valid",
  which: "Valid. Which way?",
  first: "Press V, valid, before pro or anti.",
};

const page = {
  ask: HYPOTHESES, // the questions about an item
  items: new Map(), // in this annotator's order
  states: new Map(),
  saver: null,
  current: null, // id of the item that is shown
  seen: new Set(), // ids whose text was shown: only what was read can be judged
  isHeld: false,
  isKept: false,
  isBusy: false,
  noteTimer: null,
  rest: { minutes: 0, judgements: 0, since: Date.now(), nJudged: 0, lastKey: Date.now() },
};

// ---- which item

const EMPTY = { verdict: null, stance: null, note: "", skipped: null };
const stateOf = (id) => page.states.get(id) ?? EMPTY;
const isFinished = (state) => state.verdict !== null && (!page.ask.needsStance(state.verdict) || state.stance !== null);

function nextItem() {
  const left = [...page.items.keys()].filter((id) => !isFinished(stateOf(id)));
  const skipped = left.filter((id) => stateOf(id).skipped !== null);
  skipped.sort((a, b) => stateOf(a).skipped - stateOf(b).skipped);
  return left.find((id) => stateOf(id).skipped === null) ?? skipped[0] ?? null;
}

const countJudged = () => [...page.items.keys()].filter((id) => isFinished(stateOf(id))).length;

// ---- showing

function show(id) {
  page.current = id;
  page.isKept = page.isHeld = false;
  $("intro").hidden = true;
  $("judging").hidden = id === null;
  $("done").hidden = id !== null;
  if (id === null) {
    $("done-text").textContent = `You have judged all ${page.items.size} sentences.`;
    $("done").focus();
  } else {
    fill(page.items.get(id), stateOf(id));
    window.scrollTo(0, 0);
  }
  showProgress();
}

function fill(item, state) {
  $("subtopic").textContent = item.subtopic.replaceAll("_", " ").replace("/", " · ");
  $("again").hidden = state.skipped === null;
  $("hypothesis").replaceChildren(...markWord(item.hypothesis, item.word));
  for (const name of ["template", "word", "premise"]) {
    $(name).textContent = item[name];
    $(`${name}-row`).hidden = item[name] === "" || name === "premise";
  }
  $("context").hidden = item.premise === "";
  $("context").setAttribute("aria-pressed", "false");
  if (page.ask === ASK) fillSuiteItem(item);
  $("note").value = state.note;
  $("hint").textContent = "";
  showChoice(state);
  showText();
}

/** Splits a sentence at the word that a model proposed. */
function markWord(sentence, word) {
  const at = word === "" ? -1 : sentence.toLowerCase().indexOf(word.toLowerCase());
  if (at < 0) return [sentence];
  const mark = document.createElement("mark");
  mark.textContent = sentence.slice(at, at + word.length);
  return [sentence.slice(0, at), mark, sentence.slice(at + word.length)];
}

function showChoice(state) {
  for (const button of document.querySelectorAll("[data-verdict]")) {
    button.setAttribute("aria-pressed", String(button.dataset.verdict === state.verdict));
  }
  for (const button of document.querySelectorAll("[data-stance]")) {
    button.setAttribute("aria-pressed", String(button.dataset.stance === state.stance));
    button.setAttribute("aria-disabled", String(!page.ask.needsStance(state.verdict)));
  }
}

function showText() {
  const isShown = page.isHeld || page.isKept;
  if (isShown) page.seen.add(page.current);
  $("sentence").classList.toggle("shown", isShown);
  $("texts").setAttribute("aria-hidden", String(!isShown));
  $("reveal").setAttribute("aria-pressed", String(page.isKept));
}

function showProgress() {
  const [n, all] = [countJudged(), page.items.size];
  $("progress").value = n;
  $("progress").max = all;
  $("progress-text").textContent = `${n} of ${all} judged`;
  document.title = `${n} of ${all} · Review`;
}

function announce(text) {
  $("live").textContent = "";
  requestAnimationFrame(() => ($("live").textContent = text));
}

function hint(text) {
  $("hint").textContent = text;
  announce(text);
}

const SAVING = { idle: "Nothing to save yet", saving: "Saving…", saved: "Saved", failed: "Not saved" };

function showSaving(state, message) {
  $("saving").dataset.state = state;
  $("saving-text").textContent = SAVING[state];
  if (state === "failed") {
    const n = page.saver.nUnsaved;
    showTrouble(`Not saved yet: ${n === 1 ? "1 key" : `${n} keys`}. ${message} Keep this page open: it keeps trying, and judging waits.`);
  } else if (state === "saved") {
    $("trouble").hidden = true;
  }
}

function showTrouble(text) {
  if ($("trouble-text").textContent !== text) $("trouble-text").textContent = text;
  $("trouble").hidden = false;
}

// ---- judging

function canAct() {
  if (page.isBusy || page.current === null || $("judging").hidden) return false;
  if (page.saver.isFailing) {
    hint("Wait: the last key is not saved yet.");
    return false;
  }
  return true;
}

function canJudge() {
  if (!canAct()) return false;
  if (!page.seen.has(page.current)) {
    hint("Read the sentence first: hold Space, or press “Show the text”.");
    return false;
  }
  return true;
}

function judge(verdict, stance = null) {
  const id = page.current;
  saveNote();
  page.states.set(id, { ...stateOf(id), verdict, stance, skipped: null });
  page.saver.save({ action: "judge", item: id, verdict, stance });
  if (isFinished(stateOf(id))) {
    advance(stance === null ? verdict : `${verdict}, ${stance}`);
    countTowardsBreak();
  } else {
    showChoice(stateOf(id));
    hint(page.ask.which);
  }
}

function chooseVerdict(verdict) {
  if (canJudge()) judge(verdict);
}

function chooseStance(stance) {
  if (!canJudge()) return;
  const { verdict } = stateOf(page.current);
  if (page.ask.needsStance(verdict)) judge(verdict, stance);
  else hint(page.ask.first);
}

function skip() {
  if (!canAct()) return;
  const id = page.current;
  saveNote();
  page.states.set(id, { ...stateOf(id), verdict: null, stance: null, skipped: Date.now() });
  page.saver.save({ action: "skip", item: id });
  advance("Skipped");
}

async function undo() {
  if (page.isBusy || page.saver.isFailing || !$("intro").hidden) return;
  page.isBusy = true;
  saveNote();
  const { undone } = await page.saver.save({ action: "undo" });
  page.isBusy = false;
  if (undone === null) {
    hint("There is nothing to undo.");
  } else if (!page.items.has(undone.item)) {
    hint("Undone. That sentence is not shown here.");
  } else {
    const { item, ...state } = undone;
    page.states.set(item, state);
    page.seen.add(item); // it was read when it was judged
    show(item);
    hint(page.ask.needsStance(state.verdict) ? `Undone. ${page.ask.which}` : "Undone. Judge it again.");
  }
}

function advance(said) {
  const isOnButton = document.activeElement.closest("#judging button") !== null;
  show(nextItem());
  if (page.current === null) announce("Saved. Everything is judged.");
  else announce(`${said}. Next sentence, ${$("subtopic").textContent}.`);
  if (isOnButton && page.current !== null) $("reveal").focus();
}

function saveNote() {
  clearTimeout(page.noteTimer);
  const id = page.current;
  if (id === null || !page.items.has(id)) return;
  const note = $("note").value.trim();
  if (note === stateOf(id).note) return;
  page.states.set(id, { ...stateOf(id), note });
  page.saver.save({ action: "note", item: id, note });
}

// ---- breaks

function countTowardsBreak() {
  page.rest.nJudged += 1;
  if (page.rest.judgements > 0 && page.rest.nJudged >= page.rest.judgements) proposeBreak();
}

function watchTime() {
  const { rest } = page;
  const now = Date.now();
  if (now - rest.lastKey > LONG_PAUSE) startOver();
  else if (rest.minutes > 0 && now - rest.since >= rest.minutes * 60_000) proposeBreak();
}

function proposeBreak() {
  if ($("break-dialog").open || $("judging").hidden || document.activeElement === $("note")) return;
  $("help-dialog").close();
  hideText();
  const minutes = Math.max(1, Math.round((Date.now() - page.rest.since) / 60_000));
  $("break-text").textContent = `You have judged ${page.rest.nJudged} sentences in ${minutes} ${minutes === 1 ? "minute" : "minutes"}.`;
  page.rest.nJudged = 0; // here, since the dialog's close event may come after the next judgement
  $("break-dialog").showModal();
}

function startOver() {
  Object.assign(page.rest, { since: Date.now(), nJudged: 0, lastKey: Date.now() });
}

// ---- keys, buttons, pointers

function hideText() {
  page.isHeld = page.isKept = false;
  showText();
}

function toggleText() {
  if ($("judging").hidden) return;
  page.isKept = !page.isKept;
  showText();
  announce(page.isKept ? "The text is shown." : "The text is hidden.");
}

function togglePremise() {
  if ($("judging").hidden || $("context").hidden) return;
  $("premise-row").hidden = !$("premise-row").hidden;
  $("context").setAttribute("aria-pressed", String(!$("premise-row").hidden));
}

const KEYS = {
  v: () => chooseVerdict("valid"),
  i: () => chooseVerdict("invalid"),
  n: () => chooseVerdict("incoherent"),
  p: () => chooseStance("pro"),
  a: () => chooseStance("anti"),
  u: undo,
  s: skip,
  r: toggleText,
  c: togglePremise,
  o: () => $("judging").hidden || $("note").focus(),
  h: () => $("help-dialog").showModal(),
};

function onKeyDown(event) {
  page.rest.lastKey = Date.now();
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target === $("note")) {
    if (event.key === "Escape") $("main").focus();
    return;
  }
  const isOnControl = event.target.closest("button, a, input") !== null;
  if (event.key === " " && !isOnControl && !$("judging").hidden) {
    event.preventDefault();
    if (!event.repeat) hold(true);
    return;
  }
  const action = KEYS[event.key.toLowerCase()];
  if (action === undefined || event.repeat || !$("letters").checked || page.saver === null) return;
  event.preventDefault();
  action();
}

function hold(isHeld) {
  if (page.isHeld === isHeld) return;
  page.isHeld = isHeld;
  showText();
}

/** After a click or a tap, the next Space should show the text, not press that button again. */
function leavingTheMouse(action) {
  return (event) => {
    if (event.detail > 0) $("main").focus({ preventScroll: true });
    action();
  };
}

function listen() {
  document.addEventListener("keydown", onKeyDown);
  document.addEventListener("keyup", (event) => event.key === " " && hold(false));
  window.addEventListener("blur", () => hold(false));
  document.addEventListener("visibilitychange", () => document.hidden && page.current !== null && hideText());
  const sentence = $("sentence");
  sentence.addEventListener("pointerdown", (event) => event.button === 0 && hold(true));
  for (const name of ["pointerup", "pointercancel"]) window.addEventListener(name, () => hold(false));
  sentence.addEventListener("contextmenu", (event) => event.preventDefault()); // a long press on a phone
  listenToChoices();
  const clicks = { reveal: toggleText, context: togglePremise, undo, "undo-last": undo, skip, begin, help: KEYS.h };
  for (const [id, action] of Object.entries(clicks)) $(id).addEventListener("click", action);
  $("note").addEventListener("input", () => {
    clearTimeout(page.noteTimer);
    page.noteTimer = setTimeout(saveNote, NOTE_PAUSE);
  });
  $("note").addEventListener("blur", saveNote);
  $("help-close").addEventListener("click", () => $("help-dialog").close());
  $("break-close").addEventListener("click", () => $("break-dialog").close());
  $("break-dialog").addEventListener("close", () => Object.assign(page.rest, { since: Date.now(), lastKey: Date.now() }));
  $("retry").addEventListener("click", () => (page.saver ?? { flush: load }).flush());
  $("letters").addEventListener("change", () => remember("letters", $("letters").checked ? "" : "off"));
  window.addEventListener("beforeunload", (event) => {
    if (page.saver !== null) saveNote();
    if (page.saver?.nUnsaved > 0) event.preventDefault();
  });
}

function listenToChoices() {
  for (const button of document.querySelectorAll("[data-verdict]")) {
    button.addEventListener("click", leavingTheMouse(() => chooseVerdict(button.dataset.verdict)));
  }
  for (const button of document.querySelectorAll("[data-stance]")) {
    button.addEventListener("click", leavingTheMouse(() => chooseStance(button.dataset.stance)));
  }
}

function askTheSuite() {
  page.ask = ASK;
  askAboutSuite();
  for (const letter of ["v", "i", "p", "a", "c"]) delete KEYS[letter];
  Object.assign(KEYS, suiteKeys(chooseVerdict, chooseStance));
  listenToChoices();
}

function remember(name, value) {
  try {
    sessionStorage.setItem(name, value);
  } catch {
    // Not allowed: the page asks again next time.
  }
}

function recall(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

// ---- beginning

function begin() {
  remember("begun", "yes");
  startOver();
  show(nextItem());
  $("main").focus();
}

async function load() {
  let state;
  try {
    state = await fetchJson("api/state");
  } catch (error) {
    showTrouble(error.message);
    setTimeout(load, RETRY);
    return;
  }
  const saver = new Saver(`${state.review}/${state.annotator}`, showSaving);
  page.saver = saver;
  if (saver.nUnsaved > 0) {
    await saver.saveLeftovers();
    load();
    return;
  }
  $("trouble").hidden = true;
  if (state.is_suite && page.ask !== ASK) askTheSuite();
  $("annotator").textContent = ` · ${state.annotator}`;
  page.items = new Map(state.items.map((item) => [item.id, item]));
  page.states = new Map(Object.entries(state.states));
  Object.assign(page.rest, state.breaks);
  showProgress();
  if (recall("begun") === "yes") begin();
  else {
    $("intro").hidden = false;
    $("begin").focus();
  }
  setInterval(watchTime, 5000);
}

$("letters").checked = recall("letters") !== "off";
listen();
load();
