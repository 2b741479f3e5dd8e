// Labelling: one item, one question. A question is live from the frame that paints it until it is
// answered; a key or a click at any other moment answers nothing.

import { call, discard, failure, parsed, prefix, project, put, unsent } from "./outbox.js";
import { at, draw, drawBelow, drawClasses, drawProgress, notify, out, prepare, say, tick } from "./screen.js";

const HELD = 3; // one question shown, two with their images loaded
const AWAY = 600_000; // milliseconds without a sign of life, after which questions go to others
const work = at("work"); // its data-question is the question that is live
let queue = []; // the question shown, or about to be, and those to come
let past = parsed(sessionStorage.getItem(prefix)) ?? []; // answers that can be taken back
let progress = { wanted: 0, given: 0, answers: 0 }; // as the service told; answers count on
let due = 0; // from so many answers on, it is asked for again
let trouble = null; // why the service could not be asked
let shows = 0; // what is overtaken while it loads is not painted
let since = 0; // when the question was painted
let wake; // lets the exchange with the service go on
let active = Date.now(); // when somebody did something last
let resting = false; // nobody is there: no questions are held

/** Take questions from the service, and drop those that do not stay. */
function take(questions, stays = () => true) {
  const [shown] = queue;
  queue = queue.filter((one) => stays(one) || (one === shown && work.dataset.state === "which"));
  const known = [...queue.map(({ id }) => id), ...unsent().map(([, reply]) => reply.question)];
  queue.push(...questions.filter(({ id }) => !known.includes(id)));
  for (const { item } of queue.slice(0, HELD)) prepare(item);
  if (queue[0] !== shown) show();
}

/** Paint the first question with the next frame; until then nothing can be answered. */
async function show(state) {
  const [question] = queue;
  const mine = (shows += 1);
  delete work.dataset.question;
  const item = question && (await prepare(question.item));
  await new Promise(requestAnimationFrame);
  if (!question || mine !== shows) return;
  draw(item ? (state ?? question.mode) : "failed", question, item);
  work.dataset.question = question.id;
  since = performance.now();
  if (!item) wake(true); // finds out whether the login or the connection is gone
}

function advance() {
  queue.shift();
  show();
}

function answer(kind) {
  const [question] = queue;
  const excluded = kind === "excluded" ? [...out] : [];
  const id = send(kind, { question: question.id, excluded });
  remember([...past, { id, question }]);
  if (kind !== "yes" || !project.ask_which || question.proposed.length === 1) return advance();
  work.dataset.state = "which"; // at once, so that the question stays
  show("which");
}

/** A class was chosen: it is ticked, or it is the one. */
function pick(code) {
  if (work.dataset.state === "rule-out") return tick(Number(code));
  send("which", { question: queue[0].id, which: Number(code) });
  advance();
}

/** Take the last answer back: its question is shown again, then those that were to come. */
function undo() {
  const { id, question } = past.at(-1);
  send("undo", { undoes: id });
  remember(past.slice(0, -1));
  queue = [question, ...queue.filter((other) => other.id !== question.id)];
  show();
}

function send(kind, more) {
  const id = crypto.getRandomValues(new Uint32Array(4)).join("-"); // randomUUID needs https
  const took_ms = Math.round(performance.now() - since);
  put({ id, kind, ...more, took_ms, sent: new Date().toISOString() });
  setTimeout(() => notify(trouble), 1500); // still unsent by then: worth a word
  wake();
  return id;
}

/** The last answers stay with the tab, so that they can be taken back after a reload too. */
function remember(answers) {
  past = answers.slice(-50);
  at("undo").disabled = !past.length;
  try {
    sessionStorage.setItem(prefix, JSON.stringify(past));
  } catch {} // full: then a reload ends the undo
}

/** Hold no questions until somebody starts: they would be kept from others. */
async function rest(state) {
  const started = new Promise((resolve) => (wake = resolve));
  resting = true;
  queue = [];
  show();
  draw(state);
  await started;
  resting = false;
  active = Date.now();
}

/** Exchange with the service when woken, and by itself now and then. */
async function run() {
  if (project.user.role === "lead" && !unsent().length) { // who may only be looking
    call("/api/progress").then(drawProgress, () => {});
    await rest("ready");
  }
  for (let look = true; ; ) {
    const woken = new Promise((resolve) => (wake = resolve));
    const turn = () => exchange(look);
    try { // one tab at a time where the browser sees to that, which needs https
      await (navigator.locks ? navigator.locks.request(prefix, turn) : turn());
      if (trouble && work.dataset.state === "failed") show();
      trouble = null;
    } catch (error) {
      if (!error.kind) console.error(error); // a fault of this program
      trouble = error;
    }
    notify(trouble);
    const over = progress.given >= progress.wanted ? "done" : "end";
    if (!queue.length && (trouble || !unsent().length)) draw(trouble ? "waiting" : over);
    setTimeout(wake, trouble ? 3000 : 15_000, true);
    look = await woken;
    if (Date.now() - active > AWAY && !unsent().length) await rest("away");
  }
}

/** Send everything in order, then ask for what is missing; `look` asks in any case. */
async function exchange(look) {
  while (unsent().length) await deliver(...unsent()[0]);
  if (look || queue.length < HELD) {
    const { questions } = await call("/api/next", { count: Math.max(HELD, queue.length) });
    const told = new Set(questions.map(({ id }) => id));
    take(questions, ({ id }) => told.has(id) || unsent().length > 0); // taken back meanwhile
  }
  if (look || !queue.length || progress.answers >= due) {
    progress = await call("/api/progress");
    due = progress.answers + Math.max(10, progress.answers / 5); // large projects count slowly
  }
  drawProgress(progress);
}

async function deliver(key, reply) {
  const hold = Math.min(HELD - 1 + unsent().length, 50); // open after it, with those unsent
  try {
    const { receipt, questions } = await call("/api/answer", { ...reply, hold });
    if (receipt?.id !== reply.id) throw failure("busy"); // something in between said "ok"
    discard(key);
    take(questions);
    if (receipt.status === "late") say("An answer came late, so it is kept but does not count.");
    const more = { yes: 1, no: 1, excluded: 1, undo: -1 }[reply.kind] ?? 0;
    progress = { ...progress, given: progress.given + more, answers: progress.answers + more };
  } catch (error) {
    if (!error.final) throw error;
    discard(key);
    remember(past.filter(({ id }) => id !== reply.id));
    say(`An answer was not taken: ${error.message}.`);
  }
  notify(trouble);
}

const help = () => at("how-to").showModal();
const start = () => wake(true);
const actions = { answer, pick, advance, undo, help, start, again: () => show() }; // by name

function onClick(event) {
  const { name, value } = event.target.closest("button, input") ?? {};
  const hasty = event.detail > 1 && performance.now() - since < 400; // meant the question before
  const live = work.dataset.question || ["undo", "help", "start"].includes(name);
  if (hasty || !live) event.preventDefault();
  else actions[name]?.(value);
}

/** Keys click what has them as `aria-keyshortcuts`; numbers click classes. */
function onKey(event) {
  const { key, code, target } = event;
  const typing = target === at("search");
  // A held Enter would press a focused button again and again.
  if (event.repeat && key === "Enter" && target.closest("button")) event.preventDefault();
  if (event.repeat || event.ctrlKey || event.altKey || event.metaKey || at("how-to").open) return;
  if (typing && ["Escape", "Enter"].includes(key)) target.blur();
  if (typing || !at("keys").checked || (key === "Enter" && target.closest("a, button"))) return;
  const letter = key > "~" && code.startsWith("Key") ? code[3] : key; // of other alphabets
  const having = document.querySelector(`[aria-keyshortcuts~="${CSS.escape(letter)}" i]:enabled`);
  const control = having ?? at("classes").querySelectorAll("button, input")[letter - 1];
  if (!control) return;
  event.preventDefault();
  if (control === at("search")) control.select();
  else control.click();
}

/** Another tab has put an answer into the outbox, or has sent it. */
function onStorage({ key, newValue }) {
  if (!key?.startsWith(prefix)) return;
  const answered = parsed(newValue)?.question;
  take([], ({ id }) => id !== answered);
  if (!resting) wake();
}

document.body.dataset.mode = project.mode;
remember(past);
work.addEventListener("click", onClick);
addEventListener("keydown", onKey);
addEventListener("storage", onStorage);
for (const sign of ["pointermove", "pointerdown", "keydown", "scroll"]) {
  addEventListener(sign, () => (active = Date.now()), { capture: true, passive: true });
}
addEventListener("online", () => resting || wake(true));
addEventListener("focus", () => trouble && wake(true)); // logged in elsewhere, perhaps
at("retry").addEventListener("click", () => wake(true));
at("search").addEventListener("input", drawClasses);
addEventListener("scroll", drawBelow, { capture: true, passive: true });
addEventListener("resize", drawBelow);
run();
