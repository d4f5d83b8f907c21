// A worker in TypeScript for the trial: adds, and says so in the ledger.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "./worker.ts";

const [server, queue, ledger, name] = process.argv.slice(2) as [string, string, string, string];
const worker = new Worker(server, { queue, name, leaseSeconds: 2 });
const number = { type: "integer" };
worker.step(
  "add",
  async (given, task) => {
    await sleep(100);
    try {
      // The ledger takes each key once, as a bank takes an idempotency key.
      writeFileSync(join(ledger, task.claimed.id), `ts ${given.by}`, { flag: "wx" });
    } catch (error: any) {
      if (error.code !== "EEXIST") throw error;
    }
    await sleep(100);
    return given.n + given.by;
  },
  { input: { type: "object", properties: { n: number, by: number } }, output: number },
);
await worker.run();
