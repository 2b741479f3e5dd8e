// What is on the screen. Its words are in the page; strings from people only ever become text.

import { loose, project, unsent } from "./outbox.js";

const MOST = 100; // classes drawn at a time: thousands would make every item slow
const SEARCH_FROM = 16; // so many classes are found faster by typing

export const at = (id) => document.getElementById(id);
const search = at("search");
const prepared = new WeakMap(); // by item: what shows it, loaded before it is needed
export const out = new Set(); // classes that are ruled out
let listed = []; // classes below the question
let unseen = 0; // of these, how many are not drawn

/** A copy of a template, with strings in the places that take one. */
function copy(id, ...strings) {
  const element = at(id).content.firstElementChild.cloneNode(true);
  const places = element.querySelectorAll("[dir=auto]");
  places.forEach((place, number) => place.replaceChildren(strings[number]));
  return element;
}

/** Show the parts of the page that belong to a state; of buttons, enable them. */
function only(root, state) {
  for (const part of root.querySelectorAll("[data-when]")) {
    const here = part.dataset.when.split(" ").includes(state);
    part[part.matches("button") ? "disabled" : "hidden"] = !here;
  }
}

/** What shows an item, as soon as it can be painted at once; null: it cannot be loaded. */
export async function prepare(item) {
  if (!prepared.has(item)) prepared.set(item, item.image ? loaded(item) : written(item));
  return prepared.get(item);
}

async function loaded(item) {
  const image = Object.assign(new Image(), { alt: `Item ${item.id}` });
  const load = () => Object.assign(image, { src: item.image }).decode();
  const pause = () => new Promise((go) => setTimeout(go, 1000));
  // Tried twice, and again when it is asked for again.
  await load().catch(() => pause().then(load)).catch(() => prepared.delete(item));
  const size = Math.max(image.naturalWidth, image.naturalHeight);
  image.className = size > 64 ? "" : "tiny"; // drawn with sharp squares, not as a blur
  return size ? image : null;
}

function written({ id, text, cells }) {
  const element = copy("reading", text ?? "");
  element.ariaLabel = `Item ${id}`;
  element.lastElementChild.append(...(cells ?? []).map((cell) => copy("cell", ...cell)));
  return element;
}

const OVER = ["ready", "end", "done", "away"]; // states in which nothing is asked

/** Show a state of the page; of a question, with its item unless that failed. */
export function draw(state, question, item) {
  const focused = document.activeElement;
  at("work").dataset.state = state;
  at("work").classList.toggle("over", OVER.includes(state));
  only(at("work"), state);
  at("item").replaceChildren(item ?? "");
  listed = state === "rule-out" ? [...project.classes.keys()] : (item && question.proposed) ?? [];
  search.value = "";
  search.disabled = listed.length < SEARCH_FROM;
  at("many").textContent = search.disabled ? "" : ` ${figure(listed.length)}`;
  out.clear();
  drawClasses();
  drawOut();
  const asked = at("work").querySelector(".asked:not([hidden])");
  const names = state === "propose" ? listed.map((code) => project.classes[code]) : [];
  const list = names.length > 12 ? `The list has ${names.length} classes.` : names.join(", ");
  const said = `${question ? `Item ${question.item.id}. ` : ""}${asked.innerText} ${list}`;
  if (at("said").textContent !== said) at("said").textContent = said;
  // Who moves by Tab goes on from the question, where the button they used is gone.
  if (focused.disabled || !focused.checkVisibility()) asked.querySelector("h1").focus();
}

/** Search minds neither case nor accents. */
const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

export function drawClasses() {
  const wanted = folded(search.value.trim());
  const fits = (code) => !wanted || folded(project.classes[code]).includes(wanted);
  const found = listed.filter(fits);
  const list = at("classes");
  const { state } = at("work").dataset;
  list.replaceChildren(...found.slice(0, MOST).map((code) => drawnClass(state, code)));
  list.scrollTop = 0;
  // What scrolls and holds no controls must be reachable by keyboard itself.
  list.tabIndex = state === "propose" && list.scrollHeight > list.clientHeight ? 0 : -1;
  unseen = Math.max(found.length - MOST, 0);
  at("more").textContent = unseen ? `… and ${figure(unseen)} more: type to find them.` : "";
  requestAnimationFrame(drawBelow);
}

/** Say how many classes are out of sight below: an answer speaks of them, too. */
export function drawBelow() {
  const shown = at("below").textContent;
  const count = below();
  at("below").textContent = count ? `${figure(count + unseen)} more below` : "";
  if (count && !shown) drawBelow(); // the words themselves take room
}

function below() {
  const bottom = (element) => element.getBoundingClientRect().bottom;
  const buttons = at("below").parentElement.getBoundingClientRect().top; // on a phone, over the list
  const end = 4 + Math.min(bottom(at("classes")), buttons);
  return [...at("classes").children].filter((one) => bottom(one) > end).length;
}

/** A class, in the form for a state of the page, or for the list of what is "out". */
function drawnClass(form, code) {
  const row = copy(`class-${form}`, project.classes[code]);
  const control = row.querySelector("[name=pick]");
  if (control) Object.assign(control, { value: code, checked: out.has(code) });
  return row;
}

/** Rule a class out, or take that back; it need not be on the screen. */
export function tick(code) {
  if (!out.delete(code)) out.add(code);
  const box = at("classes").querySelector(`[value="${code}"]`);
  if (box) box.checked = out.has(code);
  drawOut();
}

/** What is ruled out may be out of sight in a long list: it is listed above it. */
function drawOut() {
  const all = project.classes.length;
  at("send").disabled = !out.size || out.size === all;
  at("number").textContent = out.size ? `${out.size} of ${all}` : "";
  at("full").hidden = out.size < all;
  const above = search.disabled ? [] : [...out].slice(-MOST);
  at("out").replaceChildren(...above.map((code) => drawnClass("out", code)));
}

const figure = (number) => Math.round(number).toLocaleString("en");

function inWords(seconds) {
  if (seconds < 60) return "less than a minute";
  const [unit, size] = seconds < 7200 ? ["minute", 60] : ["hour", 3600];
  const style = { style: "unit", unit, unitDisplay: "long", maximumFractionDigits: 0 };
  return `about ${(seconds / size).toLocaleString("en", style)}`;
}

export function drawProgress({ wanted, given, answers, per_hour, seconds_left }) {
  const done = Math.min(given, wanted);
  Object.assign(at("bar"), { max: wanted || 1, value: done });
  at("done").textContent = `${figure(done)} of ${figure(wanted)}`;
  at("mine").textContent = `${figure(answers)} by you`;
  at("rate").textContent = per_hour ? `${figure(per_hour)} per hour` : "";
  at("left").textContent = seconds_left ? `${inWords(seconds_left)} left` : "";
}

/** Say how many answers are not sent yet, why, and what to do. */
export function notify(trouble) {
  const entries = unsent();
  const slow = Date.now() - Date.parse(entries[0]?.[1].sent) > 1000;
  const number = `${figure(entries.length)} answer${entries.length === 1 ? "" : "s"}`;
  at("notice").hidden = !trouble && !slow && !loose.size;
  at("unsent").textContent = entries.length ? `${number} not sent yet.` : "";
  at("risk").hidden = !loose.size;
  only(at("notice"), trouble ? (trouble.kind ?? "busy") : "sending");
}

/** Say something for a while. */
export function say(sentence) {
  at("word").textContent = sentence;
  clearTimeout(say.timer);
  say.timer = setTimeout(say, 12_000, "");
}
