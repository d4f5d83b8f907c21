// A worker of remote steps in TypeScript: no dependency, one file, for Node 18 and later, Deno and Bun.
//
//     const worker = new Worker("http://127.0.0.1:7717", { queue: "gpu", key: "olv_...", name: "gpu-1" });
//     worker.step("resize", async (image, task) => {
//       await task.progress({ done: 0.5 });
//       return { width: 80 };
//     });
//     await worker.run();
//
// It claims one task after the other. While a function works, a timer renews the lease of its task. A function that
// throws fails the task, and so does one whose output the server refuses; throwing `Final` says that another attempt
// would not help. A server that is away, or is restarted, is asked again until it is back.

export interface Claimed {
  id: string;
  lease: string;
  step: string;
  input: unknown;
  claims: number;
  progress: unknown;
}

export interface Options {
  queue: string;
  key?: string;
  name?: string;
  leaseSeconds?: number;
}

/** The JSON Schemas of a step, for people and for checks of flows. */
export interface Schemas {
  input?: Record<string, unknown>;
  output?: Record<string, unknown>;
}

export type Handler = (input: any, task: Task) => Promise<unknown>;

const WAIT_SECONDS = 20;
const RETRY_MILLISECONDS = 1000;
const TRIES_MAX = 30;
// Answers of a server, or of a proxy before it, that has done nothing yet.
const NOT_NOW = [429, 502, 503, 504];

/** An error that another attempt would meet again. */
export class Final extends Error {}

/** The task is for another worker now, or has ended: what was done of it does not count. */
export class LeaseLost extends Error {}

/** The server does not take a request: sent again, it would be refused again. */
export class Refused extends Error {}

/** The server has not answered for a while. */
export class Away extends Error {}

/** What a function is given besides its input. */
export class Task {
  /** Aborted when the workflow no longer wants the task, or another worker has it. */
  stopped = new AbortController();
  isLost = false;

  claimed: Claimed;
  private worker: Worker;

  constructor(worker: Worker, claimed: Claimed) {
    this.worker = worker;
    this.claimed = claimed;
  }

  /** Say how far it has come. */
  async progress(fields: Record<string, unknown>): Promise<void> {
    await this.beat({ progress: fields });
  }

  async beat(said: Record<string, unknown>): Promise<void> {
    try {
      const body = { lease: this.claimed.lease, lease_seconds: this.worker.leaseSeconds, ...said };
      const answer = await this.worker.post(`/tasks/${this.claimed.id}/heartbeat`, body);
      if (answer.is_cancelled) this.stopped.abort(new Error(answer.reason));
    } catch (error) {
      if (error instanceof LeaseLost) {
        this.isLost = true;
        this.stopped.abort(error);
      }
      throw error;
    }
  }

  /** Call the function, and say how it ended. */
  async work(handler: Handler): Promise<void> {
    const timer = setInterval(() => this.beat({}).catch(() => undefined), (this.worker.leaseSeconds * 1000) / 3);
    let verb = "complete";
    let said: Record<string, unknown>;
    try {
      said = { output: (await handler(this.claimed.input, this)) ?? null };
    } catch (error) {
      verb = "fail";
      said = failureOf(error);
    } finally {
      clearInterval(timer);
    }
    if (this.isLost) return;
    try {
      await this.end(verb, said);
    } catch (error) {
      if (error instanceof LeaseLost || error instanceof Away) throw error;
      await this.end("fail", failureOf(error)); // The output does not fit the step, or is nothing for JSON.
    }
  }

  private async end(verb: string, said: Record<string, unknown>): Promise<void> {
    await this.worker.post(`/tasks/${this.claimed.id}/${verb}`, { lease: this.claimed.lease, ...said });
  }
}

function failureOf(error: any) {
  const isError = error instanceof Error;
  return {
    type: (isError && error.constructor.name) || "Error",
    message: isError ? error.message : String(error),
    retryable: !(error instanceof Final),
    traceback: (isError && error.stack) || "",
  };
}

/** Takes the tasks of a queue. */
export class Worker {
  leaseSeconds: number;
  private server: string;
  private options: Options;
  private handlers = new Map<string, Handler>();
  private schemas: Record<string, Schemas> = {};

  constructor(server: string, options: Options) {
    this.options = options;
    this.server = server.replace(/\/$/, "") + "/api/v1";
    this.leaseSeconds = options.leaseSeconds ?? 30;
  }

  /** Let a function do the tasks of this remote step. */
  step(name: string, handler: Handler, schemas: Schemas = {}): void {
    this.handlers.set(name, handler);
    this.schemas[name] = schemas;
  }

  /** Work until the process ends, or `most` tasks were claimed; throws when the server takes no claims of it. */
  async run(most = Infinity): Promise<void> {
    for (let count = 0; count < most; ) {
      let task: Task | null = null;
      try {
        task = await this.claim();
        if (task === null) continue;
        count += 1;
        await task.work(this.handlers.get(task.claimed.step)!);
      } catch (error: any) {
        if (task === null && !(error instanceof Away)) throw error;
        console.error(`${task === null ? "" : `task ${task.claimed.id}: `}${error.message}`);
      }
    }
  }

  /** The next task; null if there was none for a while. */
  async claim(): Promise<Task | null> {
    const wanted = { queue: this.options.queue, steps: this.schemas, worker: this.options.name ?? "" };
    const body = { ...wanted, lease_seconds: this.leaseSeconds, wait: WAIT_SECONDS };
    const answer = await this.post("/tasks/claim", body);
    return answer.task === null ? null : new Task(this, answer.task);
  }

  /** Send a request until it is answered: each of them may be sent again. */
  async post(path: string, body: Record<string, unknown>): Promise<any> {
    const key = this.options.key;
    const headers = { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
    const data = JSON.stringify(body);
    for (let attempt = 1; attempt <= TRIES_MAX; attempt += 1) {
      let answer: Response | null = null;
      let said: any = null;
      try {
        // A server that is frozen answers nothing, and closes nothing.
        const signal = AbortSignal.timeout((WAIT_SECONDS + 30) * 1000);
        answer = await fetch(this.server + path, { method: "POST", headers, body: data, signal });
        said = await answer.json();
      } catch {
        // It cannot be reached, or was stopped before it answered; or a proxy answers, and not in JSON.
      }
      if (answer?.ok && said !== null) return said;
      if (answer?.status === 409) throw new LeaseLost(said?.detail ?? "");
      if (answer && !answer.ok && !NOT_NOW.includes(answer.status)) {
        throw new Refused(`${answer.status}: ${said?.detail ?? answer.statusText}`);
      }
      await new Promise((done) => setTimeout(done, RETRY_MILLISECONDS));
    }
    throw new Away(`${this.server}${path} was not answered`);
  }
}
