// The service, and the outbox: an answer stays in this browser until it is acknowledged.
//
// Every answer has a localStorage key of its own, so that two tabs never write over each other.
// The keys sort in the order of answering. An answer sent twice is harmless: its id makes it one.

const csrf = document.querySelector("meta[name=csrf]")?.content ?? "";

/** Ask the service; a body makes it a POST. Errors have a `kind`; what is `final` is refused. */
export async function call(path, body) {
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf };
  const post = body && { method: "POST", headers, body: JSON.stringify(body) };
  const signal = AbortSignal.timeout(20_000); // then the request counts as lost
  const response = await fetch(path, { ...post, signal }).catch(() => null);
  const told = await response?.json().catch(() => null);
  if (response?.ok && told) return known(told);
  // What is not in the service's own words comes from something in between, and may pass.
  const reason = response ? told?.reason : "offline";
  const kind = ["offline", "login", "csrf"].includes(reason) ? reason : "busy";
  const final = reason && kind === "busy" && response.status < 500 && response.status !== 429;
  throw failure(kind, told?.error, final);
}

/** What the service told, once the classes that it speaks of are known here: there may be more. */
async function known(told) {
  if (told.questions && told.classes > project.classes.length) {
    Object.assign(project, await call("/api/project"));
  }
  return told;
}

export function failure(kind, sentence, final) {
  return Object.assign(new Error(sentence), { kind, final });
}

/** Without the project nothing can be asked: try on; a page that is loaded anew asks to log in. */
async function told() {
  for (;;) {
    try {
      return await call("/api/project");
    } catch ({ kind }) {
      await new Promise((go) => setTimeout(go, 3000));
      if (kind === "login") location.reload();
    }
  }
}

export const project = await told();
export const prefix = `ruleout-outbox-${project.id}-${project.user.id}/`;
export const loose = new Map(); // what localStorage has no room for: kept while the page is open

/** What is not acknowledged yet, oldest first, as [key, answer]. */
export function unsent() {
  return [...Object.entries(localStorage), ...loose]
    .filter(([key]) => key.startsWith(prefix))
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, text]) => [key, parsed(text)])
    .filter(([, answer]) => answer?.id);
}

/** What this program wrote; null for anything else that is found in its place. */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

export function put(answer) {
  const last = unsent().at(-1)?.[0].slice(prefix.length);
  const moment = Math.max(Date.now(), parseInt(last) + 1 || 0); // clocks may jump back
  const entry = [`${prefix}${moment}-${answer.id}`, JSON.stringify(answer)];
  try {
    localStorage.setItem(...entry);
  } catch {
    loose.set(...entry);
  }
}

export function discard(key) {
  localStorage.removeItem(key);
  loose.delete(key);
}
