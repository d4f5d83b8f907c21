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
// throws fails the task; throwing `Final` says that another attempt would not help.

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

export type Handler = (input: any, task: Task) => Promise<unknown>;

const WAIT_SECONDS = 20;
const RETRY_MILLISECONDS = 1000;
const TRIES_MAX = 30;

/** An error that another attempt would meet again. */
export class Final extends Error {}

/** The task is for another worker now, or has ended: what was done of it does not count. */
export class LeaseLost extends Error {}

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
    if (!this.isLost) await this.worker.post(`/tasks/${this.claimed.id}/${verb}`, { lease: this.claimed.lease, ...said });
  }
}

function failureOf(error: any) {
  const isError = error instanceof Error;
  return {
    type: isError ? error.constructor.name : "Error",
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

  constructor(server: string, options: Options) {
    this.options = options;
    this.server = server.replace(/\/$/, "") + "/api/v1";
    this.leaseSeconds = options.leaseSeconds ?? 30;
  }

  /** Let a function do the tasks of this remote step. */
  step(name: string, handler: Handler): void {
    this.handlers.set(name, handler);
  }

  /** Work until the process ends, or `most` tasks were claimed. */
  async run(most = Infinity): Promise<void> {
    for (let count = 0; count < most; ) {
      const task = await this.claim();
      if (task === null) continue;
      count += 1;
      try {
        await task.work(this.handlers.get(task.claimed.step)!);
      } catch (error) {
        if (!(error instanceof LeaseLost)) throw error;
        console.error(`task ${task.claimed.id}: ${error.message}`);
      }
    }
  }

  /** The next task; null if there was none for a while. */
  async claim(): Promise<Task | null> {
    const wanted = { queue: this.options.queue, steps: [...this.handlers.keys()], worker: this.options.name ?? "" };
    const body = { ...wanted, lease_seconds: this.leaseSeconds, wait: WAIT_SECONDS };
    const answer = await this.post("/tasks/claim", body);
    return answer.task === null ? null : new Task(this, answer.task);
  }

  /** Send a request until it is answered: each of them may be sent again. */
  async post(path: string, body: Record<string, unknown>): Promise<any> {
    const key = this.options.key;
    const headers = { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
    for (let attempt = 1; attempt <= TRIES_MAX; attempt += 1) {
      let answer: Response | null = null;
      try {
        answer = await fetch(this.server + path, { method: "POST", headers, body: JSON.stringify(body) });
      } catch (error) {
        if (attempt === TRIES_MAX) throw error;
      }
      if (answer?.ok) return answer.json();
      if (answer?.status === 409) throw new LeaseLost((await answer.json()).detail);
      if (answer && answer.status !== 429 && answer.status !== 503) {
        throw new Error(`${answer.status}: ${(await answer.json()).detail}`);
      }
      await new Promise((done) => setTimeout(done, RETRY_MILLISECONDS));
    }
    throw new Error(`${this.server}${path} was not answered`);
  }
}
