// Labelling: one item, one question. A question is live from the frame that paints it until it is
// answered; a key or a click at any other moment answers nothing.

import { Outbox, call, newId } from "./outbox.js";
import { Classes, at, forget, notify, prepare, say, showItem, showProgress } from "./screen.js";

const HELD = 3; // one question shown, two with their images loaded
const STEPS = 50; // answers that can be taken back
const TICK = 15_000; // milliseconds between looks at progress, and for questions at the end
const DOUBLE = 400; // milliseconds in which a second click belongs to the first

const work = at("work");
let project, outbox, classes, progress;
let queue = []; // questions to come
let history = []; // answers that can be taken back, with their questions
let current = null; // the question shown, or about to be
let stage = "loading"; // ask, which, failed (no image); loading, waiting (offline), end; between
let turn = 0; // counts what is painted, so that what is overtaken is not
let since = 0; // when the question was painted
let acknowledged = 0; // answers since progress was asked

// ------------------------------------------------------------------ one question after the other

/** Take questions from the service; after a `fresh` look, others are not ours any more. */
function take(questions, fresh = false) {
  const answered = outbox.answered();
  const open = questions.filter(({ id }) => !answered.has(id));
  if (fresh) queue = [];
  const known = new Set([current, ...queue].map((question) => question?.id));
  queue.push(...open.filter(({ id }) => !known.has(id)));
  const lost = fresh && stage === "ask" && !open.some(({ id }) => id === current.id);
  if (lost || (!current && queue.length)) advance();
  prefetch();
}

const prefetch = () => queue.slice(0, HELD).forEach((question) => prepare(question.item));

function advance(question = queue.shift()) {
  current = question ?? null;
  soon(() => rest("loading"), 150); // unless something is painted before
  if (!current) return;
  const mine = turn;
  prepare(current.item).then((loaded) => mine === turn && soon(() => paint(loaded)));
  prefetch();
}

/** Paint with the next frame, or later; until then nothing can be answered. */
function soon(painting, wait = 0) {
  const mine = ++turn;
  stage = "between";
  delete work.dataset.question;
  const painted = () => mine === turn && painting();
  if (wait) setTimeout(painted, wait);
  else requestAnimationFrame(painted);
}

function paint(loaded) {
  showItem(current.item, !loaded);
  if (!loaded) putQuestion("failed", "This item cannot be shown", "Try again, or skip it.");
  else if (current.mode === "rule-out") paintRuleOut();
  else paintProposal();
  if (!loaded) outbox.send(); // finds out whether the login or the connection is gone
}

function paintProposal() {
  const question = current.proposed.length === 1 ? "Is it this?" : "Is it one of these?";
  classes.show("list", current.proposed);
  putQuestion("ask", question, "", current.proposed.map((code) => project.classes[code]));
}

function paintRuleOut() {
  classes.show("boxes");
  putQuestion("ask", "What is it surely not?", "Click away every class that you can rule out.");
}

function paintWhich() {
  classes.show("buttons", current.proposed);
  putQuestion("which", "Which one?", "Choose the class, if you know it.");
}

/** Show that there is no question just now. */
function rest(state) {
  at("item").replaceChildren();
  classes.show("list", []);
  const words = {
    loading: ["Loading …", ""],
    waiting: ["Waiting for more", "There are no more questions here until the service answers."],
    end: ["Nothing to ask at the moment", "Thank you! New questions show up here by themselves."],
  };
  putQuestion(state, ...words[state]);
}

/** Put a question, to the eyes and to screen readers; from now on it can be answered. */
function putQuestion(state, question, hint, names = []) {
  stage = state;
  since = performance.now();
  work.dataset.state = state === "ask" ? current.mode : state;
  if (current && state !== "loading") work.dataset.question = current.id;
  at("skip").textContent = state === "which" ? "Don’t know" : "Skip";
  at("asked").textContent = question;
  at("hint").textContent = hint;
  const list = names.length > 12 ? `The list has ${names.length} classes.` : names.join(", ");
  const item = current ? `Item ${current.item.id}. ` : "";
  at("said").textContent = `${item}${question} ${list || hint}`;
  enable();
}

function enable() {
  const focused = document.activeElement;
  for (const button of document.querySelectorAll("[data-do]")) {
    button.disabled = !may(button.dataset.do);
  }
  // Who moves by Tab goes on from the question, where the button they used is gone.
  const gone = work.contains(focused) && (focused.disabled || !focused.checkVisibility());
  if (gone || (focused !== document.body && !focused.isConnected)) at("asked").focus();
}

// ------------------------------------------------------------------ answers

/** Whether something can be done at this moment. */
function may(what) {
  const asked = stage === "ask" && current.mode;
  const out = classes.out.size;
  return {
    yes: asked === "propose",
    no: asked === "propose",
    send: asked === "rule-out" && out > 0 && out < project.classes.length,
    skip: ["ask", "failed", "which"].includes(stage),
    undo: history.length > 0,
    help: true,
  }[what];
}

function act(what) {
  const live = work.dataset.question || what === "undo" || what === "help";
  if (!live || !may(what)) return;
  if (what === "help") at("help").showModal();
  else if (what === "undo") undo();
  else if (stage === "which") advance(); // don't know: the "yes" stands
  else if (what === "send") answer("excluded", { excluded: [...classes.out] });
  else answer(what);
}

function answer(kind, more = {}) {
  const body = made(kind, { question: current.id, ...more });
  const asks = kind === "yes" && project.ask_which && current.proposed.length > 1;
  remember([...history, { id: body.id, question: current }]);
  outbox.put(body);
  if (asks) soon(paintWhich);
  else advance();
}

/** A class was chosen: it is the one, or it is ticked. */
function pick(code) {
  if (!work.dataset.question) return;
  if (stage === "which") {
    outbox.put(made("which", { question: current.id, which: code }));
    advance();
  } else if (stage === "ask") {
    classes.tick(code);
    enable();
  }
}

const made = (kind, more) => ({
  id: newId(), kind, ...more,
  took_ms: Math.round(performance.now() - since), sent: new Date().toISOString(),
});

/** Take the last answer back: its question is shown again, then those that were to come. */
function undo() {
  const { id, question } = history.at(-1);
  remember(history.slice(0, -1));
  queue = [current, ...queue].filter((other) => other && other.id !== question.id);
  outbox.put(made("undo", { undoes: id }));
  advance(question);
}

/** The last answers stay with the tab, so that they can be taken back after a reload too. */
function remember(answers) {
  history = answers.slice(-STEPS);
  try {
    sessionStorage.setItem(outbox.prefix, JSON.stringify(history));
  } catch {} // full or blocked: then a reload ends the undo
  enable();
}

// ------------------------------------------------------------------ what the outbox tells

const hears = {
  hold: () => Math.min(HELD - 1 + outbox.answered().size, 50), // one of them is being sent
  reply({ receipt, questions }, { kind }) {
    take(questions);
    if (receipt.status === "late") say("An answer came late, so it is kept but does not count.");
    acknowledged += { yes: 1, no: 1, excluded: 1, undo: -1 }[kind] ?? 0;
    if (Math.abs(acknowledged) >= 10) look();
    else if (progress) showProgress(progress, acknowledged);
  },
  refused(sentence, { id }) {
    remember(history.filter((answer) => answer.id !== id));
    say(`An answer was not taken: ${sentence}.`);
  },
  async idle() {
    const expired = stage === "ask" && Date.parse(current.expires) < Date.now();
    const short = queue.length + (current ? 1 : 0) < HELD;
    if (!short && !expired && stage !== "failed") return;
    take((await call("/api/next", { count: HELD })).questions, true);
    const over = !current && !outbox.entries().length;
    if (over && stage !== "end") soon(() => rest("end"));
  },
  elsewhere(body) {
    if (!body || body.kind === "undo") return notify(outbox);
    queue = queue.filter(({ id }) => id !== body.question); // answered in another tab
    if (current?.id === body.question && stage !== "which") advance();
    outbox.send(); // asks for more where too few are left
  },
  change() {
    if (!current && outbox.trouble && stage !== "waiting") soon(() => rest("waiting"));
    notify(outbox);
  },
};

async function look() {
  acknowledged = 0;
  try {
    progress = await call("/api/progress");
    showProgress(progress, acknowledged);
  } catch {} // the outbox tells what is wrong
}

// ------------------------------------------------------------------ keys and clicks

const KEYS = { y: "yes", n: "no", s: "skip", u: "undo", enter: "send", "?": "help" };

function onKey(event) {
  const { key, target } = event;
  // A held Enter would press a focused button again and again.
  if (event.repeat && key === "Enter" && target.closest("button")) event.preventDefault();
  const combined = event.ctrlKey || event.altKey || event.metaKey || event.isComposing;
  if (event.repeat || combined || at("help").open) return;
  if (target.matches("input:not([type=checkbox]), textarea, select")) return leave(event);
  if (!at("keys").checked || (key === "Enter" && target.closest("a, button"))) return;
  if (respond(letter(event))) event.preventDefault();
}

/** Other alphabets have their letters on the same keys. */
const letter = ({ key, code }) =>
  (key.length === 1 && key > "~" && code.startsWith("Key") ? code[3] : key).toLowerCase();

function leave(event) {
  if (!["Escape", "Enter"].includes(event.key)) return;
  event.preventDefault(); // Escape would empty the field, and what was found is wanted
  event.target.blur();
}

function respond(key) {
  if (key === "/" && !at("find").hidden) at("search").select();
  else if (key >= "1" && key <= "9" && classes.form !== "list") choose(classes.drawn[key - 1]);
  else if (key === "escape" && stage === "which") act("skip");
  else if (KEYS[key]) act(KEYS[key]);
  else return false;
  return true;
}

const choose = (code) => code !== undefined && pick(code);

function onClick(event) {
  const hasty = event.detail > 1 && performance.now() - since < DOUBLE;
  if (hasty) return event.preventDefault();
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.do) act(button.dataset.do);
  else if (button.id === "again") forget(current.item), advance(current);
  else pick(Number(button.value)); // of a class
}

// ------------------------------------------------------------------ the beginning

async function start() {
  project = await call("/api/project");
  document.body.dataset.mode = project.mode;
  outbox = new Outbox(`ruleout-outbox-${project.id}-${project.user.id}`, hears);
  classes = new Classes(project.classes);
  try {
    history = JSON.parse(sessionStorage.getItem(outbox.prefix)) ?? [];
  } catch {} // blocked, or damaged
  work.addEventListener("click", onClick);
  at("classes").addEventListener("change", (event) => pick(Number(event.target.value)));
  addEventListener("keydown", onKey);
  outbox.send();
  look();
  setInterval(() => (outbox.send(), look()), TICK);
}

function begin() {
  start().catch((trouble) => {
    if (!trouble.kind) throw trouble; // a fault of this program
    if (trouble.kind === "login") location.assign("/login");
    say("The service cannot be reached. It is tried again by itself.");
    setTimeout(begin, 3000);
  });
}

at("close").addEventListener("click", () => at("help").close());
at("retry").addEventListener("click", () => outbox.send());
addEventListener("online", () => at("again")?.click());
begin();
