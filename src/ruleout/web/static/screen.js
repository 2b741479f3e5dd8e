// What is on the screen. Strings from people only ever become text, never markup.

const MOST = 100; // classes drawn at a time: thousands would make every item slow
const SEARCH_FROM = 16; // so many classes are found faster by typing
const KEPT = 40; // pictures kept, for undo too
const TINY = 64; // pixels; such images are drawn with sharp squares, not as a blur
const READING = 12_000; // milliseconds that a sentence stays
const SLOW = 1000; // milliseconds after which an unsent answer is worth a word
const TRIES = [300, 1200]; // milliseconds until an image is asked for again
const pictures = new Map(); // by item: its picture, loaded and decoded before it is shown

export const at = (id) => document.getElementById(id);

function made(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// ------------------------------------------------------------------ items

/** Begin to load what an item needs; resolves to whether it can be painted. */
export function prepare(item) {
  if (item.kind !== "image") return Promise.resolve(true);
  if (!pictures.has(item.id)) pictures.set(item.id, load(item));
  if (pictures.size > KEPT) pictures.delete(pictures.keys().next().value);
  return pictures.get(item.id).loaded;
}

export const forget = (item) => pictures.delete(item.id);

function load(item) {
  const image = Object.assign(new Image(), { alt: `Item ${item.id}`, src: item.image });
  return { image, loaded: decoded(image, item.image) };
}

/** Wait until an image can be painted at once; false: it cannot be loaded. */
async function decoded(image, src, tries = TRIES) {
  try {
    await image.decode();
    image.classList.toggle("tiny", Math.max(image.naturalWidth, image.naturalHeight) <= TINY);
    return true;
  } catch {
    if (image.naturalWidth > 0) return true; // there, though not decoded ahead
    if (!tries.length) return false;
  }
  await new Promise((done) => setTimeout(done, tries[0])); // the service may be busy
  image.src = src;
  return decoded(image, src, tries.slice(1));
}

/** Show an item; `failed` where its image could not be loaded. */
export function showItem(item, failed) {
  const again = () => made("button", { className: "button", id: "again" }, "Try again");
  at("item").replaceChildren(failed ? again() : forms[item.kind](item));
}

const forms = {
  image: (item) => pictures.get(item.id).image,
  text: (item) => region(item, made("p", { dir: "auto" }, item.text ?? "")),
  row: (item) => region(item, made("dl", {}, ...(item.cells ?? []).map(cell))),
};

const cell = ([name, value]) =>
  made("div", {}, made("dt", { dir: "auto" }, name), made("dd", { dir: "auto" }, written(value)));

const written = (value) => (typeof value === "string" ? value : JSON.stringify(value));

// Long texts scroll, and what scrolls must be reachable by keyboard.
const region = ({ id }, child) =>
  made("div", { className: "reading", tabIndex: 0, role: "group", ariaLabel: `Item ${id}` }, child);

// ------------------------------------------------------------------ classes

/** The list of classes below the question. */
export class Classes {
  out = new Set(); // what is ruled out
  drawn = []; // what is on the screen; the first nine have number keys

  constructor(names) {
    Object.assign(this, { names, folded: names.map(folded), all: names.map((_, code) => code) });
    at("search").addEventListener("input", () => this.#draw());
  }

  /** Show classes as a plain "list", as "buttons", or as "boxes" to tick. */
  show(form, codes = this.all) {
    Object.assign(this, { form, codes, out: new Set() });
    at("search").value = "";
    at("find").hidden = codes.length < SEARCH_FROM;
    this.#draw();
    this.#count();
  }

  /** Rule a class out, or take that back; it need not be on the screen. */
  tick(code) {
    if (!this.out.delete(code)) this.out.add(code);
    const box = at("classes").querySelector(`input[value="${code}"]`);
    if (box) box.checked = this.out.has(code);
    this.#count();
  }

  #draw() {
    const wanted = folded(at("search").value.trim());
    const found = this.codes.filter((code) => this.folded[code].includes(wanted));
    this.drawn = found.slice(0, MOST);
    const list = at("classes");
    list.replaceChildren(...this.drawn.map((code, place) => this.#row(code, place)));
    list.className = `classes ${this.form}`;
    list.scrollTop = 0;
    // What scrolls and holds no controls must be reachable by keyboard itself.
    const reached = this.form === "list" && list.scrollHeight > list.clientHeight;
    list.tabIndex = reached ? 0 : -1;
    const left = found.length - this.drawn.length;
    at("more").hidden = !this.codes.length || (found.length > 0 && !left);
    at("more").textContent = left
      ? `… and ${left.toLocaleString("en")} more: type to find them.` : "No class is called so.";
  }

  #row(code, place) {
    const name = this.#name(code);
    if (this.form === "list") return made("li", {}, name);
    const key = place < 9 ? made("kbd", { ariaHidden: "true" }, place + 1) : "";
    if (this.form === "buttons") return made("li", {}, made("button", { value: code }, name, key));
    const box = made("input", { type: "checkbox", value: code, checked: this.out.has(code) });
    return made("li", {}, made("label", {}, box, name, key));
  }

  #name = (code) => made("span", { dir: "auto", className: "name" }, this.names[code]);

  /** What is ruled out may be out of sight in a long list: it is listed above it. */
  #count() {
    const [out, all] = [this.out.size, this.names.length];
    at("send").textContent = out ? `Rule out ${out} of ${all}` : "Rule out";
    at("full").hidden = out < all;
    at("out").hidden = !out || at("find").hidden;
    const listed = at("out").hidden ? [] : [...this.out].slice(-MOST);
    at("out").replaceChildren(...listed.map((code) => made("li", {}, this.#back(code))));
  }

  #back = (code) => {
    const ariaLabel = `Take back ${this.names[code]}`;
    return made("button", { value: code, ariaLabel }, this.#name(code), " ×");
  };
}

/** Search minds neither case nor accents. */
const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

// ------------------------------------------------------------------ words

const figure = (n) => n.toLocaleString("en");
const several = (n, word) => `${figure(n)} ${word}${n === 1 ? "" : "s"}`;

/** Seconds as people say them. */
function inWords(seconds) {
  const minutes = Math.round(seconds / 60);
  if (minutes < 1) return "less than a minute";
  if (minutes < 100) return `about ${several(minutes, "minute")}`;
  if (minutes < 48 * 60) return `about ${several(Math.round(minutes / 60), "hour")}`;
  return `about ${several(Math.round(minutes / 1440), "day")}`;
}

/** Show how far the project is; `more` answers have been acknowledged since it was asked. */
export function showProgress({ wanted, given, answers, per_hour, seconds_left }, more) {
  const done = Math.max(0, Math.min(given + more, wanted));
  Object.assign(at("bar"), { max: wanted || 1, value: done });
  const answersOf = made("span", { className: "wide" }, wanted === 1 ? " answer" : " answers");
  const parts = [
    [`${figure(done)} of ${figure(wanted)}`, answersOf],
    [`${figure(Math.max(0, answers + more))} by you`],
    per_hour && [`${figure(Math.round(per_hour))} per hour`],
    seconds_left && [`${inWords(seconds_left)} left`],
  ];
  at("pace").replaceChildren(...parts.filter(Boolean).map((part) => made("span", {}, ...part)));
}

const TROUBLES = {
  offline: "There is no connection. Your answers are kept here and sent as soon as there is one.",
  busy: "The service does not answer just now. Your answers are kept here and sent later.",
  login: "You are logged out. Your answers are kept here and sent once you have logged in.",
  reload: "Your login has changed. Your answers are kept here and sent after a reload.",
};

/** Say how many answers are not sent yet, why, and what to do. */
export function notify(outbox) {
  const { trouble, loose } = outbox;
  const unsent = outbox.entries();
  const slow = unsent.length > 0 && Date.now() - Date.parse(unsent[0][1].sent) > SLOW;
  at("notice").hidden = !trouble && !slow && !loose.size;
  const number = several(unsent.length, "answer");
  at("unsent").textContent = unsent.length ? `${number} not sent yet.` : "";
  const why = trouble ? (TROUBLES[trouble.kind] ?? `${trouble.message}.`) : "Sending …";
  const risk = "This browser has no room to keep answers: leave the page open until they are sent.";
  at("trouble").textContent = loose.size ? `${why} ${risk}` : why;
  at("login").hidden = trouble?.kind !== "login";
  at("reload").hidden = trouble?.kind !== "reload";
  at("retry").hidden = !["offline", "busy"].includes(trouble?.kind);
}

/** Say something for a while. */
export function say(sentence) {
  at("word").textContent = sentence;
  at("word").hidden = !sentence;
  clearTimeout(say.timer);
  say.timer = setTimeout(say, READING, "");
}
