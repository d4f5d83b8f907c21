// What sends requests and reads streams; it knows no operation. No dependency: `fetch` of browsers, Node 22, Deno and Bun.

/** How a client reaches a server. */
export interface Options {
  /**
   * The API key, or a function that gives one. A function is asked again when the server refuses what it gave: so a page can hold a
   * token for one run, and get another one when that has expired.
   */
  key?: string | (() => string | Promise<string>);
  /** Headers of every request. */
  headers?: Record<string, string>;
  /** Milliseconds that a request may take, with all its tries; 30,000 unless given. A stream has no such limit. */
  timeout?: number;
  /** What sends the requests, in place of the global `fetch`. */
  fetch?: typeof fetch;
}

/** What one request may be given besides. */
export interface RequestOptions {
  /** Ends the request. */
  signal?: AbortSignal;
  /** The same key again is the same request. Made up unless given, so that a request may be tried again. */
  idempotencyKey?: string;
  /** Milliseconds that this request may take, with all its tries. */
  timeout?: number;
  /** Of a stream: the id of the last message that is known already. */
  after?: string;
}

/** A message of a stream. */
export interface Message<Name extends string = string, Data = unknown> {
  name: Name;
  /** Where the stream goes on behind it: `after` of another request. Empty if the stream has no such place. */
  id: string;
  data: Data;
}

/** The server has refused a request: a problem of RFC 9457. */
export class Refused extends Error {
  /** The status of HTTP. */
  status: number;
  /** The class of the error in Python: "NotFoundError". */
  error: string;
  /** The kind of the error, as a name that does not change: "queue_not_found". */
  code: string;
  /** The facts of the error, such as `run_id`. */
  facts: Record<string, unknown>;
  /** What the caller can do. */
  next: string;
  /** Everything that the server has said of it. */
  problem: Record<string, unknown>;

  constructor(status: number, problem: Record<string, unknown>) {
    super(String(problem.detail ?? `the server answers with ${status}`));
    this.name = "Refused";
    this.status = status;
    this.error = String(problem.error ?? "");
    this.code = String(problem.code ?? "");
    this.facts = (problem.facts ?? {}) as Record<string, unknown>;
    this.next = String(problem.next ?? "");
    this.problem = problem;
  }
}

/** The server has not answered for a while: what the request was for may have been done or not. */
export class Away extends Error {
  constructor(cause: unknown) {
    super(`the server does not answer: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.name = "Away";
  }
}

interface Parts {
  body?: unknown;
  query?: object;
  options?: RequestOptions;
}

const TIMEOUT = 30_000;
const PAUSE = 100;
const PAUSE_MAX = 5_000;
/** A stream says at least so often that it is there. */
const SILENCE_MAX = 60_000;
/** Answers of a server, or of a proxy before it, that has done nothing yet. */
const NOT_NOW = [429, 502, 503, 504];
const MESSAGE_CHARACTERS_MAX = 64 * 1024 * 1024;

export class Transport {
  #url: string;
  #options: Options;
  #key: string | undefined;

  constructor(url: string, options: Options) {
    this.#url = url.replace(/\/+$/, "");
    this.#options = options;
  }

  async json<T>(method: string, path: string, parts: Parts): Promise<T> {
    return (await this.#answer(method, path, parts, (answer) => answer.json())) as T;
  }

  async text(method: string, path: string, parts: Parts): Promise<string> {
    return this.#answer(method, path, parts, (answer) => answer.text());
  }

  async nothing(method: string, path: string, parts: Parts): Promise<void> {
    await this.#answer(method, path, parts, (answer) => answer.arrayBuffer());
  }

  /** The messages of a stream, until the server says that there are no more; a lost connection is taken up where it was lost. */
  async *follow<M extends Message>(method: string, path: string, parts: Parts): AsyncGenerator<M> {
    const signal = parts.options?.signal;
    let after = parts.options?.after ?? "";
    for (let pause = PAUSE; ; pause = Math.min(pause * 2, PAUSE_MAX)) {
      try {
        const headers: Record<string, string> = after ? { "last-event-id": after } : {};
        const silence = new AbortController();
        const ends = signal ? AbortSignal.any([signal, silence.signal]) : silence.signal;
        const answer = await this.#send(method, path, { ...parts, options: { ...parts.options, signal: ends } }, headers);
        if (answer.status === 204 || !answer.body) return;
        for await (const message of messagesOf(answer.body, silence)) {
          pause = PAUSE;
          if (message.id) after = message.id;
          yield message as M;
          if (message.name === "end") return;
        }
      } catch (error) {
        if (signal?.aborted || (error instanceof Refused && !NOT_NOW.includes(error.status))) throw error;
      }
      await rest(pause, signal);
    }
  }

  /** What comes of the answer; a request that may have been lost is sent again, with the same key. */
  async #answer<T>(method: string, path: string, parts: Parts, read: (answer: Response) => Promise<T>): Promise<T> {
    const { signal, timeout = this.#options.timeout ?? TIMEOUT, idempotencyKey } = parts.options ?? {};
    const headers: Record<string, string> = {};
    if (method !== "GET") headers["idempotency-key"] = idempotencyKey ?? crypto.randomUUID();
    const late = AbortSignal.timeout(timeout + waitOf(parts));
    const ends = signal ? AbortSignal.any([signal, late]) : late;
    for (let pause = PAUSE, last: unknown; ; pause = Math.min(pause * 2, PAUSE_MAX)) {
      try {
        return await read(await this.#send(method, path, { ...parts, options: { ...parts.options, signal: ends } }, headers));
      } catch (error) {
        if (signal?.aborted || (error instanceof Refused && !NOT_NOW.includes(error.status))) throw error;
        if (!late.aborted) last = error;
        if (!late.aborted) await rest(pause, ends).catch(() => undefined);
        if (signal?.aborted) throw signal.reason;
        if (late.aborted) throw last instanceof Refused ? last : new Away(last ?? error);
      }
    }
  }

  async #send(method: string, path: string, parts: Parts, own: Record<string, string>): Promise<Response> {
    const known = this.#key;
    const answer = await this.#sendOnce(method, path, parts, own);
    if (answer.ok) return answer;
    const refused = new Refused(answer.status, await problemOf(answer));
    // What the program gave may have expired meanwhile; a key that was just given is not asked for again.
    if (answer.status !== 401 || typeof this.#options.key !== "function" || known === undefined) throw refused;
    this.#key = undefined;
    const again = await this.#sendOnce(method, path, parts, own);
    if (again.ok) return again;
    throw new Refused(again.status, await problemOf(again));
  }

  async #sendOnce(method: string, path: string, parts: Parts, own: Record<string, string>): Promise<Response> {
    const headers: Record<string, string> = { ...this.#options.headers, ...own };
    const { key } = this.#options;
    this.#key ??= typeof key === "function" ? await key() : key;
    if (this.#key) headers.authorization = `Bearer ${this.#key}`;
    const sent: RequestInit = { method, headers, signal: parts.options?.signal ?? null };
    if (parts.body !== undefined) {
      headers["content-type"] = "application/json";
      sent.body = JSON.stringify(parts.body);
    }
    return (this.#options.fetch ?? fetch)(`${this.#url}${path}${queryOf(parts.query)}`, sent);
  }
}

/** Milliseconds that the server was asked to wait before it answers. */
function waitOf(parts: Parts): number {
  const said = [parts.query, parts.body].map((each) => Number((each as { wait?: unknown } | undefined)?.wait ?? 0));
  return Math.max(0, ...said.filter(Number.isFinite)) * 1000;
}

function queryOf(query: object | undefined): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null) found.append(name, String(each));
    }
  }
  return found.size ? `?${found}` : "";
}

async function problemOf(answer: Response): Promise<Record<string, unknown>> {
  const text = await answer.text();
  try {
    const found: unknown = JSON.parse(text);
    if (found !== null && typeof found === "object") return found as Record<string, unknown>;
  } catch {
    // A proxy may answer with a page.
  }
  return { detail: text.slice(0, 200) || answer.statusText };
}

/** The messages in a body; one that says nothing for too long is given up. */
async function* messagesOf(body: ReadableStream<Uint8Array>, silence: AbortController): AsyncGenerator<Message> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (true) {
      const timer = setTimeout(() => silence.abort(new Error("the stream is silent")), SILENCE_MAX);
      const { done, value } = await reader.read().finally(() => clearTimeout(timer));
      if (done) return;
      text += decoder.decode(value, { stream: true });
      if (text.length > MESSAGE_CHARACTERS_MAX) throw new Error("a message is too long");
      const ends = text.split("\n\n");
      text = ends.pop() ?? "";
      for (const each of ends) {
        const message = messageOf(each);
        if (message) yield message;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function messageOf(text: string): Message | undefined {
  const fields = { event: "message", id: "", data: "" };
  for (const line of text.split("\n")) {
    const [, name, value] = /^(event|id|data): ?(.*)$/.exec(line) ?? [];
    if (name) fields[name as keyof typeof fields] = value ?? "";
  }
  return fields.data ? { name: fields.event, id: fields.id, data: JSON.parse(fields.data) } : undefined;
}

function rest(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(done, milliseconds);
    function done(): void {
      signal?.removeEventListener("abort", stop);
      resolve();
    }
    function stop(): void {
      clearTimeout(timer);
      reject(signal?.reason);
    }
    signal?.addEventListener("abort", stop, { once: true });
  });
}
