// The outbox: an answer is kept in this browser until the service has acknowledged it.
//
// Every answer has a localStorage key of its own, so that two tabs never write over each other.
// The keys sort in the order of answering. Sending a reply twice is harmless: its id makes it one.

const PAUSES = [1, 2, 4, 8, 15, 30]; // seconds between tries
const PATIENCE = 20_000; // milliseconds until a request counts as lost
const csrf = document.querySelector("meta[name=csrf]")?.content ?? "";

/** Why a request failed: `kind` is offline, busy, login, reload or refused. */
class Trouble extends Error {
  constructor(kind, sentence = "", wait = 0) {
    super(sentence);
    Object.assign(this, { kind, wait });
  }
}

/** Ask the service; a body makes it a POST. */
export async function call(path, body) {
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf };
  const post = body && { method: "POST", headers, body: JSON.stringify(body) };
  let response, told;
  try {
    response = await fetch(path, { ...post, signal: AbortSignal.timeout(PATIENCE) });
    told = await response.json().catch(() => null);
  } catch {
    throw new Trouble("offline");
  }
  if (response.ok && told) return told;
  throw trouble(response, told);
}

function trouble(response, told) {
  if (response.status === 401) return new Trouble("login");
  if (told?.reason === "csrf") return new Trouble("reload");
  // What is not in the service's own words comes from something in between, and may pass.
  const refused = response.status >= 400 && response.status < 500 && response.status !== 429;
  if (refused && told?.error) return new Trouble("refused", told.error);
  return new Trouble("busy", told?.error, Number(response.headers.get("Retry-After")) || 0);
}

/** Random, and also where `crypto.randomUUID` is missing (plain http from another machine). */
export function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Outbox {
  tried = 0; // failures in a row
  trouble = null; // why sending has stopped, while it has
  loose = new Map(); // what localStorage does not take

  /** `on` hears `reply`, `refused`, `idle` (all sent), `change`, `elsewhere`; `hold` is asked. */
  constructor(name, on) {
    Object.assign(this, { prefix: `${name}/`, on });
    addEventListener("online", () => this.send());
    addEventListener("focus", () => this.trouble && this.send()); // logged in elsewhere, perhaps
    addEventListener("storage", ({ key, newValue }) => {
      if (key?.startsWith(this.prefix)) this.on.elsewhere(parsed(newValue));
    });
  }

  put(body) {
    const last = this.entries().at(-1)?.[0].slice(this.prefix.length) ?? "";
    const moment = Math.max(Date.now(), parseInt(last) + 1 || 0); // clocks may jump back
    const key = `${this.prefix}${String(moment).padStart(15, "0")}-${body.id}`;
    try {
      localStorage.setItem(key, JSON.stringify(body));
    } catch {
      this.loose.set(key, body); // full or blocked: kept while the page is open
    }
    this.tried = 0;
    this.send();
    setTimeout(this.on.change, 1500); // still unsent by then: worth a word
  }

  /** What is not acknowledged yet, oldest first, as [key, body]. */
  entries() {
    const found = [...this.loose];
    for (const key of names()) {
      if (key.startsWith(this.prefix)) found.push([key, parsed(localStorage.getItem(key))]);
    }
    return found.filter(([, body]) => body).sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** The questions that have an answer here that no later undo takes back. */
  answered() {
    const open = new Map();
    for (const [, body] of this.entries()) {
      if (body.kind === "undo") open.delete(body.undoes);
      else open.set(body.id, body.question);
    }
    return new Set(open.values());
  }

  remove(key) {
    this.loose.delete(key);
    try {
      localStorage.removeItem(key);
    } catch {} // blocked: then it was loose
  }

  /** Send everything in order; one tab at a time where the browser can see to that. */
  async send() {
    this.again = this.running;
    if (this.running) return;
    this.running = true;
    clearTimeout(this.timer);
    const work = () => this.#sendAll();
    try {
      await (navigator.locks ? navigator.locks.request(this.prefix, work) : work());
    } finally {
      this.running = false;
    }
    if (this.again && !this.trouble) this.send();
  }

  async #sendAll() {
    try {
      for (let next; (next = this.entries()[0]); ) await this.#sendOne(...next);
      await this.on.idle();
      Object.assign(this, { tried: 0, trouble: null });
    } catch (trouble) {
      if (!(trouble instanceof Trouble)) throw trouble;
      const pause = Math.max(trouble.wait, PAUSES[Math.min(this.tried++, PAUSES.length - 1)]);
      this.trouble = trouble;
      if (trouble.kind !== "reload") this.timer = setTimeout(() => this.send(), 1000 * pause);
    }
    this.on.change();
  }

  async #sendOne(key, body) {
    try {
      const told = await call("/api/answer", { ...body, hold: this.on.hold() });
      if (told.receipt?.id !== body.id) throw new Trouble("busy"); // no acknowledgement of ours
      this.remove(key);
      Object.assign(this, { tried: 0, trouble: null });
      this.on.reply(told, body);
    } catch (trouble) {
      if (trouble.kind !== "refused") throw trouble;
      this.remove(key);
      this.on.refused(trouble.message, body);
    }
    this.on.change();
  }
}

function names() {
  try {
    return Object.keys(localStorage);
  } catch {
    return []; // blocked
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null; // not ours, or damaged
  }
}
