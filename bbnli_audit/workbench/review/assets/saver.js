/**
 * Saves rows one after another, in order. A row leaves the queue only when the server confirms that it is saved. Until
 * then it is also in the browser's own storage, so closing the page loses nothing. Each row has its own key, so the
 * server recognises a row that it already has.
 */
const WAITS = [500, 1000, 2000, 4000];

export class Saver {
  #rows = [];
  #waiting = new Map(); // key → what to call with the answer
  #isSending = false;
  #nFailed = 0;
  #timer = null;
  #prefix;
  #onChange;

  /** @param onChange called with "idle", "saving", "saved" or "failed", and a message when failed */
  constructor(name, onChange) {
    this.#prefix = `bbnli-review/${name}/`;
    this.#onChange = onChange;
    this.#rows = stored(this.#prefix);
  }

  get nUnsaved() {
    return this.#rows.length;
  }

  get isFailing() {
    return this.#nFailed > 0;
  }

  /** Queues a row, and resolves to the server's answer once it is saved. */
  save(row) {
    const whole = { key: crypto.randomUUID(), order: performance.timeOrigin + performance.now(), ...row };
    this.#rows.push(whole);
    store(this.#prefix + whole.key, whole);
    const answer = new Promise((resolve) => this.#waiting.set(whole.key, resolve));
    this.flush();
    return answer;
  }

  /** Sends what an earlier page could not send, and resolves when all of it is saved. */
  async saveLeftovers() {
    const last = this.#rows.at(-1);
    if (last === undefined) return;
    const saved = new Promise((resolve) => this.#waiting.set(last.key, resolve));
    this.flush();
    await saved;
  }

  /** Sends what is left at once. */
  async flush() {
    if (this.#isSending || this.#rows.length === 0) return;
    clearTimeout(this.#timer);
    this.#isSending = true;
    if (!this.isFailing) this.#onChange("saving", "");
    try {
      while (this.#rows.length > 0) {
        const row = this.#rows[0];
        const answer = await post("api/rows", row);
        this.#rows.shift();
        forget(this.#prefix + row.key);
        this.#nFailed = 0;
        this.#waiting.get(row.key)?.(answer);
        this.#waiting.delete(row.key);
      }
      this.#onChange("saved", "");
    } catch (error) {
      const wait = WAITS[Math.min(this.#nFailed, WAITS.length - 1)];
      this.#nFailed += 1;
      this.#onChange("failed", error.message);
      this.#timer = setTimeout(() => this.flush(), wait);
    } finally {
      this.#isSending = false;
    }
  }
}

export async function fetchJson(address, options) {
  let response;
  try {
    response = await fetch(address, { cache: "no-store", ...options });
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  if (response.ok) return response.json();
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  throw new Error(isJson ? (await response.json()).message : await response.text());
}

function post(address, row) {
  return fetchJson(address, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(row),
    keepalive: true,
  });
}

function store(name, row) {
  try {
    localStorage.setItem(name, JSON.stringify(row));
  } catch {
    // Full or not allowed: the row is still in this page's queue.
  }
}

function stored(prefix) {
  try {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(prefix));
    return names.map((name) => JSON.parse(localStorage.getItem(name))).sort((a, b) => a.order - b.order);
  } catch {
    return [];
  }
}

function forget(name) {
  try {
    localStorage.removeItem(name);
  } catch {
    // Not allowed, so nothing is stored.
  }
}
