// Written by `make generate` from docs/openapi.json.
import { type Message, type Options, type RequestOptions, Transport } from "./transport.ts";

/** Actions, the newest first. */
export interface ActionsPage {
  items: AuditEntry[];
  next: string | null;
}

/** The verb that helps next. As text it is a call in Python, with its effect. */
export interface Advice {
  /** The verb of the engine: `resume`, `queues.set`. */
  verb: string;
  /** Its arguments, by the names that the engine has for them. */
  arguments: Record<string, unknown>;
  /** The end of a sentence that begins with the call: `lets it go on`. */
  effect: string;
}

/** The answer of a run to an ask. */
export interface AnswerView {
  key: string;
  answer: unknown;
  /** If the answer is an error. */
  error: Failure | null;
}

/** A key without its secret, which cannot be seen again. */
export interface ApiKey {
  id: string;
  /** The name of the owner: the actor of everything that is done with the key. */
  name: string;
  scope: "admin" | "operator" | "viewer" | "worker";
  /** The only workflows that it may see and use; null for all. */
  workflows: string[] | null;
  /** It may see and use only runs with all of these tags, and what it starts has them; empty for all runs. */
  tags: Record<string, string>;
  /** The only queues that a worker may claim tasks from; null for all. */
  queues: string[] | null;
  status: "active" | "expired" | "revoked";
  created_at: string;
  /** When it is valid no longer; null for never. */
  expires_at: string | null;
  revoked_at: string | null;
  /** To the minute. */
  last_used_at: string | null;
}

/** A document to check and publish, or to keep as a draft. */
export interface ApplyFlow {
  reason?: string;
  /** The person who does it. Only a caller that needs no key may say so; else it is the owner of the key. */
  by?: string | null;
  /** The text: YAML or JSON. */
  document: string;
  /** The revision (of a draft, its number) that you have changed; 0 for a new one. Without, what is there is replaced. */
  expected?: number | null;
}

/** The decision of a person. It is true if they approved: `if answer: ...`. */
export interface Approval {
  name: string;
  approved: boolean;
  by: string;
  /** When it was made. */
  at: string;
  comment: string;
  /** The form as it was filled in; a rejection may come without. */
  form: unknown;
  /** For the person who decides: false if another had decided before, and this is that decision. */
  is_first: boolean;
}

/** One request for approval, and what became of it. */
export interface ApprovalRequest {
  /** Tells the requests of one run apart: `request` in a decision. */
  id: string;
  run_id: string;
  name: string;
  status: "approved" | "closed" | "pending" | "rejected";
  title: string;
  /** The people who are asked by now. */
  assignees: string[];
  /** The JSON Schema of the form; null if there is nothing to fill in. */
  schema: Record<string, unknown> | null;
  requested_at: string;
  deadline: string | null;
  escalated_at: string | null;
  /** The decision: by whom, what and when; the form as plain JSON. */
  decision: Approval | null;
  /** When it was found that the run waits for a decision no longer. */
  closed_at: string | null;
  /** Why it is closed. */
  reason: string;
  /** For how long it has been open, or was, when this was read. */
  age: string;
}

/** Requests for approval. */
export interface ApprovalsPage {
  items: ApprovalRequest[];
  next: string | null;
  previous: string | null;
}

/** The question to a run. */
export interface AskRun {
  body?: unknown;
  /**
   * The key of the ask: with the same key, for this run and name, it is the same ask; the header `Idempotency-Key`
   * unless given.
   */
  key?: string | null;
  /** How long to wait for the answer, up to a limit of the server. */
  wait?: number | string;
  /** Create the run if there is none. */
  start?: StartIfAbsent | null;
}

/** Why it is done, and who does it. */
export interface Attributed {
  reason?: string;
  /** The person who does it. Only a caller that needs no key may say so; else it is the owner of the key. */
  by?: string | null;
}

/** The result of a check of the log. */
export interface AuditCheck {
  rows: number;
  /** The number of the first row; 0 if there is none. */
  first: number;
  /** The ends of the log now. Keep this elsewhere, and give it as `since` to a later check. */
  head: string;
  problems: string[];
  /** How many rows have gone from the beginning, as the log says. */
  pruned: number;
  /** When the last of them went. */
  pruned_at: string | null;
  /** How many of them went after the earlier check. */
  pruned_since: number;
  /** The number of the last row that is proven by a key; 0 without a key. */
  sealed: number;
}

/** An action that was done, or refused, and by whom. */
export interface AuditEntry {
  number: number;
  /** By the clock of the store. */
  at: string;
  actor: string;
  verb: string;
  /** The object of the action: a run, a workflow, a schedule, a queue, a flow, a key. */
  target: string;
  reason: string;
  /** The id of the API key that was used. */
  key: string;
  /** The way in: `http`, `cli` or `code`. */
  via: string;
  address: string;
  /** Whether it was refused: then nothing was done. */
  is_denied: boolean;
  /** Over this row and the one before it. */
  hash: string;
}

/** Which ticks to start that have no run. */
export interface Backfill {
  start: string;
  end: string;
  overlap?: "allow" | "buffer_all" | null;
}

/** How many ticks of the range had no run. */
export interface BackfillView {
  ticks: number;
}

/** A batch has ended, or nothing more comes of it for now. */
export interface BatchEnd {
  status: "cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting";
  /** The run that has to be resumed before more comes; null if the batch has ended. */
  parked: string | null;
  /** Why that run is parked, or why the batch was cancelled. */
  reason: string;
}

/** How far a batch has come. */
export interface BatchInfo {
  id: string;
  /** The workflow or step that is called for each row. */
  work: string;
  /** Which of both `work` is. */
  kind: "step" | "workflow";
  version: number;
  status: "cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting";
  /** How many rows it has. */
  total: number;
  succeeded: number;
  failed: number;
  concurrency: number;
  created_at: string;
  finished_at: string | null;
  /** The wait of the batch, or how it ended; empty in lists. */
  why: string;
  /** The verbs that help it go on. */
  advice: Advice[];
}

/** A page of batches. */
export interface BatchesPage {
  items: BatchInfo[];
  next: string | null;
  previous: string | null;
}

/** Which runs a verb is for. At least one filter. */
export interface Bulk {
  /** Any of these. */
  status?: ("cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting")[];
  workflow?: string | null;
  /** One of these. */
  ids?: string[];
  /** The version of the workflow. */
  version?: number | null;
  /** The run that started them as its children. */
  parent_id?: string | null;
  id_prefix?: string | null;
  /** Created at this instant or later. */
  since?: string | null;
  /** Created before this instant. */
  until?: string | null;
  /** Ended at this instant or later. */
  finished_since?: string | null;
  /** Ended before this instant. */
  finished_until?: string | null;
  /** The name of a signal, an ask or an approval, or the id of a run; `@timer` for what a timer will wake. */
  waiting_for?: string | null;
  /** The class of the exception that it failed with. */
  error?: string | null;
  queue?: string | null;
  tags?: Record<string, string> | null;
  /** At most so many, the oldest first. */
  limit?: number;
  /** Only list the runs: nothing is done. */
  dry_run?: boolean;
  reason?: string;
}

/** Which runs a verb is for. At least one filter. */
export interface BulkOfTrees {
  /** Any of these. */
  status?: ("cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting")[];
  workflow?: string | null;
  /** One of these. */
  ids?: string[];
  /** The version of the workflow. */
  version?: number | null;
  /** The run that started them as its children. */
  parent_id?: string | null;
  id_prefix?: string | null;
  /** Created at this instant or later. */
  since?: string | null;
  /** Created before this instant. */
  until?: string | null;
  /** Ended at this instant or later. */
  finished_since?: string | null;
  /** Ended before this instant. */
  finished_until?: string | null;
  /** The name of a signal, an ask or an approval, or the id of a run; `@timer` for what a timer will wake. */
  waiting_for?: string | null;
  /** The class of the exception that it failed with. */
  error?: string | null;
  queue?: string | null;
  tags?: Record<string, string> | null;
  /** At most so many, the oldest first. */
  limit?: number;
  /** Only list the runs: nothing is done. */
  dry_run?: boolean;
  reason?: string;
  /** No child runs; false for all runs that the list of runs shows. A run whose root fits too is reached there. */
  roots_only?: boolean;
}

/** A page of verbs for many runs, the newest first. */
export interface BulkPageView {
  items: BulkProgress[];
  next: string | null;
  previous: string | null;
}

/** How far an operation has come. */
export interface BulkProgress {
  id: string;
  verb: "cancel" | "pause" | "purge" | "resume" | "retry";
  /** The status of the run that carries the operation out. */
  status: "cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting";
  created_at: string;
  by: string;
  reason: string;
  /** Runs that it was tried with so far. */
  found: number;
  done: number;
  refused: number;
  /** Which runs refused, and why: the first 1,000, and while it goes on the first 20. */
  refusals: Refusal[];
  finished_at: string | null;
}

/** The facts about an open run to change. */
export interface ChangeRun {
  /** Tags beside its own; null removes one. */
  tags?: Record<string, string | null> | null;
  /** How long it may take: from now on, or from its beginning if no worker has begun it; null for as long as it likes. */
  timeout?: number | string | null;
  /** Another queue, `default` for none: only of a run that no worker has begun, as the next four. */
  queue?: string | null;
  key?: string | null;
  priority?: number | null;
  /** How long from now it is to begin. */
  delay?: number | string | null;
  /** The instant instead. */
  start_at?: string | null;
  reason?: string;
}

/** A document to check. */
export interface CheckFlow {
  /** The text: YAML or JSON. */
  document: string;
}

/** The result of a check of a document. */
export interface CheckedView {
  /** It can be published; there may be warnings. */
  is_fine: boolean;
  /** The name of the flow; empty if it cannot be read. */
  name: string;
  /** In the order of the text; of many, the first mistakes and the first warnings. */
  problems: ProblemView[];
  /** Its steps; null if it cannot be read. */
  graph: GraphView | null;
  /** The JSON Schema of its input; null if it takes any JSON. */
  input: Record<string, unknown> | null;
}

/** Which task is wanted. */
export interface ClaimTask {
  queue: string;
  /** The names of the remote steps that the caller can do; or each name with the schemas of the step. */
  steps: string[] | Record<string, StepSchemas>;
  /** The name of the caller, for people. */
  worker?: string;
  /** How long the task is the caller's without a heartbeat; then another one may claim it. */
  lease_seconds?: number;
  /** How long to wait for a task, up to a limit of the server. */
  wait?: number | string;
}

/** The next task; null if there was none. */
export interface Claimed {
  task: Task | null;
}

/** How a task ended well. */
export interface CompleteTask {
  lease: string;
  output?: unknown;
}

/** How many there are; `str(count)` is `42`, or `10,000+` if counting stopped there. It compares as its number. */
export interface Count {
  count: number;
  /** Whether counting stopped at its limit: there are so many, and maybe more. */
  at_least: boolean;
}

/** A key to be made. */
export interface CreateKey {
  /** The name of the owner; the audit log has everything that is done with the key under this name. */
  name: string;
  scope?: "admin" | "operator" | "viewer" | "worker";
  /** The only workflows that it may see and use; null for all. */
  workflows?: string[] | null;
  /** It may see and use only runs with all of these tags, and what it starts has them; null for all runs. */
  tags?: Record<string, string> | null;
  /** The only queues that a worker may claim tasks from; null for all. */
  queues?: string[] | null;
  /** When it is valid no longer; null for never. */
  expires?: string | null;
}

/** A link to be made. */
export interface CreateLink {
  /** Whether it approves, or rejects. */
  approved: boolean;
  /** The person whom it is for; the decision has this name. */
  by: string;
  expires_seconds?: number;
  request?: string | null;
}

/** A token to be made. */
export interface CreateToken {
  /** The only stream that it is for; null for everything that happens to the run. */
  stream?: string | null;
  expires_seconds?: number;
}

/** A message that the code of a run could not read. It blocks nothing: the run waits for the next one. */
export interface DeadLetter {
  /** Where it is in the journal; tells the messages of one tree apart. */
  id: string;
  run_id: string;
  kind: "decision" | "promise" | "signal";
  /** The name of the signal or of the approval; of a promise, its call. */
  name: string;
  /** Why it could not be read. */
  reason: string;
  /** When it was set aside. */
  at: string;
  /** The content of the message, as plain values; null if that cannot be read here. */
  value: unknown;
}

/** Messages that could not be read. */
export interface DeadLettersList {
  items: DeadLetter[];
}

/** A decision. */
export interface Decide {
  /** The form that the person filled in. */
  form?: unknown;
  comment?: string;
  /** The id of the request; the oldest open one of this name unless given. */
  request?: string | null;
  /** The person who decides. Only a caller that needs no key may say so; else it is the owner of the key. */
  by?: string | null;
}

/** The form that a person fills in. */
export interface DecideByLink {
  form?: unknown;
  comment?: string;
}

/** A document of the library. */
export interface DocumentView {
  name: string;
  /** 0 for a draft, and for the document of a run. */
  revision: number;
  hash: string;
  text: string;
  /** The JSON Schema of what a run of it is given; null if it takes any JSON. */
  input: Record<string, unknown> | null;
  /** The JSON Schema of the variables that a start may give, an object by name; null if it has none. */
  vars: Record<string, unknown> | null;
}

/** It was done, and is durable. */
export interface Done {
  /** The id of the thing that was changed. */
  id: string;
}

/** One fact of a journal. */
export interface Event {
  /** Its number in the journal of its tree. */
  seq: number;
  at: string;
  /** The run that it is about: the root of the tree, or one of its children. */
  run_id: string;
  /** The kind of the event: `StepSucceeded`, `SignalReceived`. `outlive.events` lists them all. */
  type: string;
  /**
   * Its fields, which the class of that name in `outlive.events` describes: instants as datetimes, spans as timedeltas,
   * values of programs as plain JSON, and nothing that only the store reads.
   */
  data: Record<string, unknown>;
  /** The event in one sentence. */
  words: string;
}

/** The error of a promise. */
export interface Fail {
  message: string;
  /** The name of the error; the run gets `PromiseFailedError` with it, or its own class of this name. */
  type?: string;
}

/** How a task failed. */
export interface FailTask {
  lease: string;
  /** The message for people: its beginning, if it is long. */
  message: string;
  /** The class of the error, as the worker calls it. */
  type?: string;
  /** Whether another attempt may help, if the step has one left. */
  retryable?: boolean;
  /** How long until the next attempt. */
  retry_after?: number | string | null;
  /** Its end, if it is long. */
  traceback?: string;
}

/** The failure of a run, a step or an item. */
export interface Failure {
  /** The class of what went wrong, with its module: `shop.errors.CardDeclined`. */
  type: string;
  /** The message of the exception. */
  message: string;
  /**
   * The class in which it reached the workflow, if that is another one: that of a step whose own class the workflow does
   * not know.
   */
  wrapper: string;
  /** Its notes, as `add_note` adds them. */
  notes: string[];
  /** The public attributes of the exception, as plain JSON. */
  attributes: Record<string, unknown>;
  /** The failure from which it was raised. */
  cause: Failure | null;
  /** Empty in lists. */
  traceback: string;
}

/** A flow of the library, as it is now. */
export interface Flow {
  name: string;
  /** The published revision, which a start by name runs. null if there is only a draft. */
  current: FlowRevision | null;
  is_enabled: boolean;
  /** The reason why it is disabled, and who disabled it. */
  why_disabled: string;
  draft: FlowDraft | null;
}

/** A document that is stored and not published. */
export interface FlowDraft {
  /** Grows by one with every `save_draft`; the next one may say which it expects. */
  number: number;
  /** The revision that was published when the draft was begun; 0 if there was none. */
  base: number;
  hash: string;
  /** When it was saved. */
  at: string;
  by: string;
  reason: string;
}

/** One published revision of a flow: which document, who published it, when, and why. */
export interface FlowRevision {
  /** 1 for the first one. */
  number: number;
  /** The first 12 hex digits of the hash of its content. Runs are pinned to it. */
  hash: string;
  /** When it was published. */
  at: string;
  by: string;
  reason: string;
  /** The earlier revision whose document this one has; 0 if it was not made by a rollback. */
  rolled_back_to: number;
}

/** Flows. */
export interface FlowsList {
  items: Flow[];
}

/** How to fork a run. */
export interface ForkRun {
  /** The call, or the number of the event, that is not copied, nor anything behind it. */
  at?: string | number | null;
  /** Results of steps, by name or call. */
  set?: Record<string, unknown> | null;
  /** Other arguments of the workflow, by name. */
  input?: Record<string, unknown> | null;
  version?: number | null;
  /** The id of the new run: with the same id it is the same fork; the header `Idempotency-Key` makes one unless given. */
  id?: string | null;
  reason?: string;
}

/** A run that is in a list no longer. */
export interface GoneRun {
  id: string;
}

/** An arrow. */
export interface GraphArrow {
  start: string;
  end: string;
  /** The data of an SVG path. */
  path: string;
  /** The code of a state mentions where it leads, and no annotation promises it. */
  is_guess: boolean;
  /** A run has gone along it. */
  is_taken: boolean;
}

/** A step of a flow, or a state of a machine. */
export interface GraphNode {
  id: string;
  /** The component that a step uses, or the kind of a state. */
  kind: string;
  x: number;
  y: number;
  width: number;
  height: number;
  /** Where it begins in the document of its flow, counted from 1; 0 if that is not known. */
  line: number;
  /** The boxes from which arrows lead to it. */
  needs: string[];
  /** It has an `if`. */
  is_conditional: boolean;
  /** false for a step to which no run ever comes. */
  is_needed: boolean;
  /** false for a step that only one branch of a condition needs. */
  is_certain: boolean;
  is_start: boolean;
  is_exit: boolean;
  /** Where a run is with it; null in a graph without a run. */
  state: "failed" | "pending" | "retrying" | "running" | "skipped" | "succeeded" | "undone" | "waiting" | null;
  attempts: number;
  /** How often the run has come to this state of its machine. */
  visits: number;
  /** Seconds, the last time. */
  took: number | null;
  /** The error, or what it waits for. */
  note: string;
}

/** A graph that is laid out in layers, from the top to the bottom. */
export interface GraphView {
  /** A function has neither steps nor states that are known before it runs: its graph is empty. */
  kind: "flow" | "function" | "machine";
  name: string;
  width: number;
  height: number;
  nodes: GraphNode[];
  arrows: GraphArrow[];
}

/** How an engine is at this moment, in words: "healthy", or "unhealthy: ..." with the reason. */
export interface Health {
  /** Whether everything is healthy. */
  is_ready: boolean;
  /** Whether the store answers. */
  store: string;
  /** Whether its worker holds its lease and takes runs; null for an engine without one. */
  worker: string | null;
  /** The resources that it has set up or tried to, by name. */
  resources: Record<string, string>;
}

/** It is well. */
export interface Healthy {
  status: "ok";
}

/** A sign of life. */
export interface Heartbeat {
  lease: string;
  /** Progress for people, and for the next worker if this one is lost. */
  progress?: Record<string, unknown>;
  lease_seconds?: number;
}

/** A part of a history. */
export interface HistoryView {
  items: Event[];
  /** Give it as `after` to get what follows; null if this is all. */
  next: number | null;
  /** Give it as `after` to follow the run behind these events. */
  position: string;
}

/** A run that holds a slot of a queue. */
export interface Holder {
  id: string;
  key: string;
  status: "cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting";
  /** The name of the worker that runs it; empty while it waits. */
  worker: string;
  /** How many slots it holds. */
  slots: number;
}

/** A run that does not move, and why. */
export interface Incomplete {
  /** A root run, for its whole tree. */
  run: Run;
  kind: "damaged" | "interrupted" | "parked" | "undefined" | "untaken";
  /** One sentence for a person, the same that `why` says. */
  reason: string;
  /** The verbs that help. */
  advice: Advice[];
}

/** Runs that do not move. */
export interface IncompleteList {
  items: Incomplete[];
  /** Give it as `before` to get the next page. */
  next: string | null;
}

/** The outcome of one item. */
export interface ItemView {
  /** The place of its row, from 0 on. */
  index: number;
  status: "failed" | "succeeded";
  result: unknown;
  error: Failure | null;
}

/** Items that have ended, in the order of their rows. */
export interface ItemsPage {
  items: ItemView[];
  /** Give it as `after` to get the next page; null if no item behind it has ended. */
  next: number | null;
}

/** An open run, and the journal of its tree. */
export interface JournalView {
  id: string;
  workflow: string;
  version: number;
  is_parked: boolean;
  /** Why it is parked. */
  reason: string;
  /** The start value of its checksums. */
  nonce: number;
  rows: RowView[];
}

/** Journals of open runs. */
export interface Journals {
  items: JournalView[];
  /** Values that the journals keep elsewhere, by their ids. */
  blobs: Record<string, string>;
  /** Runs that did not fit into this answer: ask for them again. */
  left: string[];
}

/** Keys. */
export interface KeysList {
  items: ApiKey[];
}

/** How long runs take once a worker has begun them: the time in line is not in it. */
export interface LengthsView {
  /** How many were looked at, the last created ones. */
  runs: number;
  /** Seconds. */
  p50: number;
  p95: number;
}

/** The runs of a list, in its order. */
export interface ListedRuns {
  ids: string[];
}

/** The principal that asks. */
export interface MeView {
  /** The owner of the key, or what a proxy says; `local` for programs of this machine. */
  name: string;
  scopes: string[];
  /** The only workflows that it may see and use; null for all. */
  workflows: string[] | null;
  /** It may see and use only runs with all of these tags, and what it starts has them; empty for all runs. */
  tags: Record<string, string>;
  /** The tenant whose runs it sees; empty for the one of the server. */
  namespace: string;
  /** The operations that it may use, by their names in the OpenAPI document. */
  operations: string[];
}

/** How many runs were created in a minute, by how they are now. */
export interface MinuteView {
  start: string;
  succeeded: number;
  failed: number;
  cancelled: number;
  open: number;
}

/** A key that was just made. Its secret is here and nowhere else. */
export interface NewKey {
  key: ApiKey;
  secret: string;
}

/** A link that was just made. Its secret is here and nowhere else. */
export interface NewLink {
  run_id: string;
  /** The name of the approval. */
  name: string;
  /** The question of the workflow. */
  title: string;
  /** Whether it approves, or rejects. */
  approved: boolean;
  /** The person who decides with it. */
  by: string;
  expires: string;
  /** Whether there is something to fill in. */
  has_form: boolean;
  /** Where the HTTP API takes it, below the address of a server. */
  path: string;
}

/** A token that was just made. It is here and nowhere else. */
export interface NewRunToken {
  /** The token that a request sends as `Authorization: Bearer ...`. */
  token: string;
  run_id: string;
  expires_at: string;
}

/** The ask is durable and has no answer yet: `GET /runs/{id}/asks/{name}/{key}` waits for it. */
export interface NotAnswered {
  key: string;
  why: string;
  /** The verbs that help the run go on. */
  advice: Advice[];
}

/** The run has not ended; ask again. */
export interface NotEnded {
  id: string;
  status: "cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting";
  why: string;
  /** The verbs that help it go on. */
  advice: Advice[];
}

/** The outcomes of many runs. */
export interface Outcomes {
  items: RunOutcome[];
}

/** A store as it is now. */
export interface OverviewView {
  /** Runs that have not ended, by status. */
  runs: Record<string, Count>;
  /** Runs of the last 24 hours that have failed or timed out. */
  failed: Count;
  /** Runs that ask people for a decision. */
  approvals: Count;
  /** The last hour, the oldest minute first. */
  minutes: MinuteView[];
  lengths: LengthsView;
  /** Live workers. */
  workers: number;
  /** How long the oldest due run without a queue has waited for a worker. */
  pending_seconds: number;
  /** How long the oldest due schedule has waited for a worker. */
  schedule_seconds: number;
  /** Queues that have runs, or are paused. */
  queues: QueueSummary[];
}

/** Which runs to pause. At least one filter. */
export interface PauseRuns {
  /** Any of these. */
  status?: ("cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting")[];
  workflow?: string | null;
  /** One of these. */
  ids?: string[];
  /** The version of the workflow. */
  version?: number | null;
  /** The run that started them as its children. */
  parent_id?: string | null;
  id_prefix?: string | null;
  /** Created at this instant or later. */
  since?: string | null;
  /** Created before this instant. */
  until?: string | null;
  /** Ended at this instant or later. */
  finished_since?: string | null;
  /** Ended before this instant. */
  finished_until?: string | null;
  /** The name of a signal, an ask or an approval, or the id of a run; `@timer` for what a timer will wake. */
  waiting_for?: string | null;
  /** The class of the exception that it failed with. */
  error?: string | null;
  queue?: string | null;
  tags?: Record<string, string> | null;
  /** At most so many, the oldest first. */
  limit?: number;
  /** Only list the runs: nothing is done. */
  dry_run?: boolean;
  reason?: string;
  /** The person who does it. Only a caller that needs no key may say so; else it is the owner of the key. */
  by?: string | null;
}

/** A document of a flow that runs may be pinned to. */
export interface PinnedDocument {
  name: string;
  hash: string;
  canonical: string;
}

/** Documents of flows, by name and hash. */
export interface PinnedDocuments {
  items: PinnedDocument[];
  /** The version of every flow that is published, by its name. */
  published: Record<string, number>;
  /** The name and the hash of the last one here, `orders@3f9a1c02b7de...`, if there are more. */
  next: string | null;
}

/** The problem, and how to solve it (RFC 9457). */
export interface ProblemBody {
  /** `urn:outlive:error:` and the code. */
  type: string;
  /** The title of the status. */
  title: string;
  status: number;
  /** The cause. */
  detail: string;
  /**
   * The class that a program in Python catches, one of `outlive.errors`. `ServerError` has what no engine in its own
   * process would refuse: a key, a limit of the server, a bug.
   */
  error: string;
  /** The kind of the error, as a name that does not change: `queue_not_found`. */
  code: string;
  /** The facts of the error, such as `run_id`: the attributes that its class has in Python. */
  facts: Record<string, unknown>;
  /** The verbs that help next, as data. */
  advice: Advice[];
  /** The next thing to do, as a sentence; the advice in it as requests. */
  next: string;
}

/** One thing that is wrong with a document, or should be better. */
export interface ProblemView {
  /** Which rule it breaks. */
  code: string;
  message: string;
  /** The advice; may be empty. */
  suggestion: string;
  /** Where it is in the data: `steps.charge.with.cents`. */
  path: string;
  /** Where it is in the text, counted from 1; 0 if that is not known. */
  line: number;
  column: number;
  /** The flow can run all the same. */
  is_warning: boolean;
}

/** Why a draft is published, and who does it. */
export interface PublishFlow {
  reason?: string;
  /** The person who does it. Only a caller that needs no key may say so; else it is the owner of the key. */
  by?: string | null;
  expected?: number | null;
}

/** The object that a run shows. */
export interface PublishedView {
  id: string;
  fields: Record<string, unknown>;
}

/** The runs that `engine.purge` found, and the deleted ones. Runs are counted without their children. */
export interface Purge {
  /** Runs that fit and ended long enough ago. */
  found: number;
  /** Runs that were deleted; 0 in a dry run. */
  deleted: number;
  /** When the first of the found runs ended. */
  oldest: string | null;
  /** When the last of them ended. */
  newest: string | null;
  /** How many were found of each workflow and status, as "order failed". */
  counts: Record<string, number>;
  /** The archives that were written. */
  files: string[];
}

/** Which runs to delete for good. At least one filter. */
export interface PurgeRuns {
  /** Any of these. */
  status?: ("cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting")[];
  workflow?: string | null;
  /** One of these. */
  ids?: string[];
  /** The version of the workflow. */
  version?: number | null;
  /** The run that started them as its children. */
  parent_id?: string | null;
  id_prefix?: string | null;
  /** Created at this instant or later. */
  since?: string | null;
  /** Created before this instant. */
  until?: string | null;
  /** Ended at this instant or later. */
  finished_since?: string | null;
  /** Ended before this instant. */
  finished_until?: string | null;
  /** The name of a signal, an ask or an approval, or the id of a run; `@timer` for what a timer will wake. */
  waiting_for?: string | null;
  /** The class of the exception that it failed with. */
  error?: string | null;
  queue?: string | null;
  /** How long ago they ended at least. */
  older_than?: number | string;
  tags?: Record<string, string> | null;
  limit?: number;
  /** Only say what would be deleted. */
  dry_run?: boolean;
}

/** The limits of a queue; None for no limit. */
export interface QueueLimits {
  /** Slots in all workers: runs under way at once, if each takes one. */
  concurrency: number | null;
  /** Slots in one worker. */
  per_worker: number | null;
  /** Runs under way at once with the same key. */
  per_key: number | null;
  /** How often runs may begin; all of them hold at once. */
  rate: RateTier[];
  /** Whether runs with a higher priority go first. */
  priorities: boolean;
  /** The waiting that counts as much as one level of priority. */
  ageing: string;
  /** How many turns keys have when others have one, where that is not one. */
  weights: Record<string, number>;
  /** Until when a run keeps its slot: to its `end`, or only while it is `running`. */
  hold: "end" | "running";
}

/** A queue as it is now. Counting stops at 10,000. */
export interface QueueState {
  name: string;
  /** The limits that apply: a limit that was set at run time, else the one in the code. */
  limits: QueueLimits;
  /** The limits that were set at run time. */
  changed: string[];
  /** Why it gives no slots; empty if it does. */
  paused: string;
  /** Runs that wait for a slot. */
  in_line: Count;
  /** Runs that hold one, or more. */
  running: Count;
  /** Slots that they hold. */
  slots: Count;
  /** Runs that will get in line at an instant of their own. */
  later: Count;
  /** How long the oldest run at the head of its lines has waited; null if none waits. */
  waiting: string | null;
  /** Up to 100 runs that hold slots. */
  holders: Holder[];
  /** Up to 20 keys that wait, the longest wait first. */
  keys: WaitingKey[];
}

/** How full a queue is. */
export interface QueueSummary {
  name: string;
  in_line: Count;
  running: Count;
  /** How long the oldest run at the head of its lines has waited. */
  waiting: string | null;
  paused: string;
}

/** Queues. */
export interface QueuesList {
  items: QueueState[];
}

/** How many runs may begin: tokens a second and at once, or runs in a window of time. */
export interface RateTier {
  /** `window` for a `FixedWindow`, `sliding` for a `SlidingWindow`. */
  kind: "bucket" | "sliding" | "window";
  /** Tokens a second of a bucket; runs in one window. */
  amount: number;
  /** Tokens that a bucket holds; null for a window. */
  burst: number | null;
  /** How long a window is; null for a bucket. */
  span: string | null;
}

/** Which runs. */
export interface ReadJournals {
  /** Roots of trees; a root that does not exist or has ended is left out. */
  run_ids: string[];
}

/** Why it is done. */
export interface Reasoned {
  reason?: string;
}

/** A run that refused a verb for many runs. */
export interface Refusal {
  id: string;
  /** The class of the error. */
  error: string;
  message: string;
}

/** A workflow that has a trigger for an event and cannot be given it. */
export interface RefusedStart {
  workflow: string;
  reason: string;
}

/** The value of a promise. */
export interface Resolve {
  value?: unknown;
}

/** How a run ended. */
export interface ResultView {
  id: string;
  status: "cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting";
  /** The result of the run, if it succeeded. */
  result: unknown;
  error: Failure | null;
  reason: string;
}

/** The batch of the rows that have not succeeded. */
export interface RetryBatch {
  /** The id of the new batch; made of the header `Idempotency-Key` unless given. */
  id?: string | null;
}

/** Revisions, the newest first. */
export interface RevisionsList {
  items: FlowRevision[];
}

/** Why a key is revoked. */
export interface RevokeKey {
  reason?: string;
}

/** Which revision to publish again. */
export interface RollbackFlow {
  reason?: string;
  /** The person who does it. Only a caller that needs no key may say so; else it is the owner of the key. */
  by?: string | null;
  /** The one before the published one unless given. */
  to?: number | null;
  expected?: number | null;
}

/** A row of a journal, as the journal format has it. */
export type RowView = [number, number, number, string];

/** One run. */
export interface Run {
  /** Given by its caller, or made up. */
  id: string;
  /** The name of its workflow. */
  workflow: string;
  /** The version of its workflow, pinned when it was started. */
  version: number;
  /** Where it is in its life. */
  status: "cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting";
  /** The run at the root of its tree; itself, if nothing has started it as a child. */
  root_id: string;
  /** The run that has started it as a child; null for the root of a tree. */
  parent_id: string | null;
  /** Its place in its tree; 0 for the root. */
  number: number;
  /** The waits of the run. */
  waits: Wait[];
  /** When it was started. */
  created_at: string;
  /** When its row was last written. */
  updated_at: string;
  /** When it ended; null while it is open. */
  finished_at: string | null;
  /** When a worker should look at it. */
  wake_at: string | null;
  /** Its deadline; of a run that no worker has begun, what it would be if one began it when it was due. */
  timeout_at: string | null;
  /** When a worker must have begun it: else it fails. */
  begin_by: string | null;
  /** The name of the worker that runs it; empty if none does. */
  worker: string;
  /** Take-overs after an interruption since the last progress. */
  attempts: number;
  /** Text by which it can be found. */
  tags: Record<string, string>;
  /** Why it is parked or was cancelled. */
  reason: string;
  /** The failure of the run. */
  error: Failure | null;
  /** The calls of the requests that wait for a decision. */
  approvals: string[];
  /** The queue that it was started in; empty for none, and for a child. */
  queue: string;
  /** Its key in the queue. */
  queue_key: string;
  /** How many slots of the queue it takes. */
  slots: number;
}

/** How many runs each group has. */
export interface RunCounts {
  /** By the name of the status, workflow or queue; runs without a queue are in `default`. */
  groups: Record<string, Count>;
}

/** The outcome of a verb for many runs for one of them. */
export interface RunOutcome {
  id: string;
  workflow: string;
  /** The status of the run before. */
  status: "cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting";
  /** Whether the verb has succeeded; false in a preview. */
  done: boolean;
  /** The class of the error, if the run has refused. */
  error: string;
  /** Why it has. */
  message: string;
}

/** Runs. */
export interface RunsList {
  items: Run[];
}

/** A page of runs. */
export interface RunsPage {
  items: Run[];
  /** Give it as `after` to get the next page. */
  next: string | null;
  previous: string | null;
}

/** A schedule, how far it has come, and what stands in its way. */
export interface Schedule {
  name: string;
  workflow: string;
  version: number;
  /** When it ticks and what it starts; null if its row is damaged. */
  schedule: ScheduleSpec | null;
  is_paused: boolean;
  is_tripped: boolean;
  /** The next starts; empty while it is stopped, and when it is over. */
  next_fires: string[];
  /** The last runs that have ended, the newest first. */
  last: ScheduledRun[];
  /** Runs that have not ended, the newest first. */
  open: ScheduledRun[];
  /** Ticks that wait until a run has ended. */
  waiting: number;
  /** How many of its runs in a row have failed. */
  failures: number;
  /** Ticks that were not started because of a run that was open. */
  skipped: number;
  /** Ticks that passed while no worker was there, and were not caught up; at least so many. */
  missed: number;
  /** One sentence: when it fires next, or what stands in its way. */
  why: string;
  /** The verbs that help, if something stands in its way. */
  advice: Advice[];
}

/** When runs start, and how; made by `outlive.cron` and `outlive.every`. */
export interface ScheduleSpec {
  /** Its own name; that of the workflow if it is empty. */
  name: string;
  /** Cron expressions: it ticks when one of them matches. */
  cron: string[];
  /** The time between two ticks, if it has no cron expressions. */
  every: string | null;
  tz: string;
  /** When it does not tick: cron expressions, and days as `2026-12-24`. */
  exclude: string[];
  /** When it begins. */
  start: string | null;
  /** When it is over. */
  end: string | null;
  /** How much later than its tick a run starts at most. */
  jitter: string;
  overlap: "allow" | "buffer_all" | "buffer_one" | "cancel_previous" | "skip" | "terminate_previous";
  /** How many ticks are started that were missed; 0 if none, not even the latest. */
  catch_up: number;
  /** After how many failures in a row it stops; 0: never. */
  trip_after: number;
  /** By name as plain JSON, with `{"$tick": form}` where the time of the tick belongs. */
  arguments: Record<string, unknown>;
  tags: Record<string, string>;
  /** The key of its runs in the queue of the workflow. */
  key: string;
  /** The priority of its runs in the queue of the workflow. */
  priority: number | null;
}

/** A run of a schedule. */
export interface ScheduledRun {
  id: string;
  tick: string;
  /** The status of the run; `gone` if it was deleted before the schedule saw its end. */
  status: string;
}

/** Schedules. */
export interface SchedulesList {
  items: Schedule[];
  /** Give it as `after` to get the next page. */
  next: string | null;
}

/** Something that has happened. */
export interface SendEvent {
  /** For example `order.created`. */
  type: string;
  data?: unknown;
  /**
   * The id of the event: with the same source, type and id it is the same event; made of the header `Idempotency-Key`
   * unless given.
   */
  id?: string | null;
  source?: string;
  headers?: Record<string, string> | null;
}

/** A signal to send. */
export interface SendSignal {
  payload?: unknown;
  /**
   * The key of the signal: with the same key, for this run and name, it is the same signal; the header `Idempotency-Key`
   * unless given.
   */
  key?: string | null;
  /** Create the run if there is none. */
  start?: StartIfAbsent | null;
}

/** Signals to send. */
export interface SendSignals {
  signals: SignalTo[];
}

/** The effects of one event. */
export interface Sent {
  id: string;
  /** The runs that it has started, each in the transaction in which the event was taken; empty if no trigger fits. */
  runs: StartedRun[];
  /** Workflows that were not started, because the data does not fit what they take or their trigger cannot read it. */
  refused: RefusedStart[];
  /** The runs of `outlive.delivery` that deliver it to HTTP sinks. */
  deliveries: StartedRun[];
}

/** Many signals. */
export interface SentSignals {
  /** An answer for each, in the order of the signals. */
  items: SignalOutcome[];
}

/** Limits to change; what is left out stays, and null removes the limit. */
export interface SetQueue {
  /** Slots in all workers: runs under way at once, if each takes one. */
  concurrency?: number | null;
  /** Slots in one worker. */
  per_worker?: number | null;
  /** Runs under way at once with the same key. */
  per_key?: number | null;
  /** How often runs may begin; all of them hold at once. */
  rate?: SetTier[] | null;
  /** How many turns a key has when others have one; all that have other than one. */
  weights?: Record<string, number> | null;
}

/**
 * The target of a schedule, and its times: by `cron`, or `every` so often. The field `schedule` of an answer
 *     fits.
 */
export interface SetSchedule {
  /** May be left out if the schedule is there. */
  workflow?: string | null;
  /** The name in the path, if it is given. */
  name?: string;
  /** It ticks when any of these expressions matches. */
  cron?: string[];
  /** The time between two ticks: seconds, or as `PT15M`. */
  every?: number | string | null;
  /** The IANA name of the time zone of the expressions. */
  tz?: string;
  /** By name; `{"$tick": "instant"}` stands for the time of the tick. */
  arguments?: Record<string, unknown>;
  /** The policy for a tick while a run of an earlier tick is open. */
  overlap?: "allow" | "buffer_all" | "buffer_one" | "cancel_previous" | "skip" | "terminate_previous";
  /** Which ticks are started that were missed while no worker was there. */
  catch_up?: "all" | "latest" | "none" | number;
  start?: string | null;
  end?: string | null;
  /** When it does not tick: cron expressions, and days as `2026-12-24`. */
  exclude?: string[];
  /** How much later than its tick a run starts at most. */
  jitter?: number | string;
  /** After so many failed runs in a row it stops until a person resumes it; 0 for never. */
  trip_after?: number;
  tags?: Record<string, string>;
  /** The key of its runs, in the queue of the workflow. */
  key?: string;
  /** The priority of its runs, in the queue of the workflow. */
  priority?: number | null;
}

/** Where to deliver which events. */
export interface SetSink {
  url: string;
  /** For example `order.*`; all unless given. */
  types?: string[];
  secret?: string | null;
}

/** How many runs may begin: tokens a second and at once, or runs in a window of time. */
export interface SetTier {
  /** `window` for a `FixedWindow`, `sliding` for a `SlidingWindow`. */
  kind: "bucket" | "sliding" | "window";
  /** Tokens a second of a bucket; runs in one window. */
  amount: number;
  /** Tokens that a bucket holds; the amount rounded up unless given. */
  burst?: number | null;
  /** How long a window is. */
  span?: number | string | null;
}

/** A promise that is settled. */
export interface SettledView {
  id: string;
  /** Whether this request has settled it, or an earlier try of it with the same `Idempotency-Key`; else another one has. */
  is_new: boolean;
}

/** The answer for one of many signals. */
export interface SignalOutcome {
  run_id: string;
  name: string;
  /** Why it was not sent: its run is not there, has ended or is full. */
  problem: ProblemBody | null;
}

/** A signal and the run that it is for. */
export interface SignalTo {
  payload?: unknown;
  /**
   * The key of the signal: with the same key, for this run and name, it is the same signal; the header `Idempotency-Key`
   * unless given.
   */
  key?: string | null;
  /** Create the run if there is none. */
  start?: StartIfAbsent | null;
  run_id: string;
  name: string;
}

/** Where events of some types are delivered to, over HTTP. */
export interface Sink {
  name: string;
  url: string;
  /** The types of events, or patterns as `order.*`. */
  types: string[];
  /** The name of the secret whose value signs the deliveries; the value is never stored. */
  secret: string | null;
}

/** Sinks. */
export interface SinksList {
  items: Sink[];
}

/** Which step to skip. */
export interface SkipStep {
  /** The name of the call in the history; may be left out if only one is in flight. */
  call?: string | null;
  /** The result of the step for the workflow; without it, the workflow gets `StepSkippedError`. */
  result?: unknown;
}

/** A batch to start. */
export interface StartBatch {
  queue?: string | null;
  /** The key in the queue. */
  key?: string | null;
  priority?: number | null;
  /** How many slots of the queue a run takes; one unless given. */
  slots?: number | null;
  /** It takes one argument, the row. */
  workflow: string;
  rows: unknown[];
  version?: number | null;
  /** How many items are under way at once, in all workers together. */
  concurrency?: number;
  /** The id of the batch: a start with the same id is the same batch; made of the header `Idempotency-Key` unless given. */
  id?: string | null;
  tags?: Record<string, string> | null;
  headers?: Record<string, string> | null;
  /** How many items may fail before the batch does; all of them unless given. */
  failures_max?: number | null;
  /** Which share of the items may fail; with both, whichever is less. */
  failures_ratio?: number | null;
}

/** A verb for many runs, in the background. At least one filter. */
export interface StartBulk {
  /** Any of these. */
  status?: ("cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting")[];
  workflow?: string | null;
  /** One of these. */
  ids?: string[];
  /** The version of the workflow. */
  version?: number | null;
  /** The run that started them as its children. */
  parent_id?: string | null;
  id_prefix?: string | null;
  /** Created at this instant or later. */
  since?: string | null;
  /** Created before this instant. */
  until?: string | null;
  /** Ended at this instant or later. */
  finished_since?: string | null;
  /** Ended before this instant. */
  finished_until?: string | null;
  /** The name of a signal, an ask or an approval, or the id of a run; `@timer` for what a timer will wake. */
  waiting_for?: string | null;
  /** The class of the exception that it failed with. */
  error?: string | null;
  queue?: string | null;
  tags?: Record<string, string> | null;
  /** At most so many, the oldest first. */
  limit?: number;
  /** Only list the runs: nothing is done. */
  dry_run?: boolean;
  reason?: string;
  /** No child runs; false for all runs that the list of runs shows. A run whose root fits too is reached there. */
  roots_only?: boolean;
  /** Include runs that the engine makes for itself. */
  internal?: boolean;
  /** The person who asks for it. Only a caller that needs no key may say so; else it is the owner of the key. */
  by?: string | null;
  /** A repeated id names the same operation. Without one, the id is made of the header `Idempotency-Key`. */
  id?: string | null;
  verb: "cancel" | "pause" | "resume" | "retry";
}

/** A run of a flow. */
export interface StartFlow {
  queue?: string | null;
  /** The key in the queue. */
  key?: string | null;
  priority?: number | null;
  /** How many slots of the queue a run takes; one unless given. */
  slots?: number | null;
  /**
   * The id of the run: a start with the same id gives the same run. Without one, the header `Idempotency-Key` makes it;
   * without that, the server does.
   */
  id?: string | null;
  /**
   * The answer when the id is taken: give that run, give it if it has not ended, refuse, refuse if it has not ended,
   * take its place at once, or take it when that run was cancelled and has ended.
   */
  on_conflict?: "attach" | "attach_open" | "cancel_open" | "reject" | "reject_open" | "replace";
  /** How long the run may take as a whole, from when a worker begins it. */
  timeout?: number | string | null;
  tags?: Record<string, string> | null;
  headers?: Record<string, string> | null;
  /** How long from now it is to begin. */
  delay?: number | string | null;
  /** The instant instead. */
  start_at?: string | null;
  /** How long after it is due a worker may begin it: else it fails, and no code of it runs. */
  begin_within?: number | string | null;
  input?: unknown;
  vars?: Record<string, unknown> | null;
  /**
   * Changes of its steps for this run, a JSON merge patch for each: retries, timeouts and limits, or what the document
   * lets a start change. An admin of the whole store may change everything.
   */
  overrides?: Record<string, unknown> | null;
  revision?: number | null;
}

/** The run that a message creates, in the same transaction, if none has the id in the path. */
export interface StartIfAbsent {
  /** The name of the workflow. */
  workflow: string;
  /** By name, or in a list. They are checked against the schema that workers have described. */
  arguments?: Record<string, unknown> | unknown[] | null;
  /** The newest version unless given. */
  version?: number | null;
  headers?: Record<string, string> | null;
  /** When a run with the id has ended: refuse the message, or begin another run for it under the id. */
  on_conflict?: "attach" | "attach_open";
}

/** The answer for one of many starts. */
export interface StartOutcome {
  id: string;
  /** Why it was not started: its id is taken. */
  problem: ProblemBody | null;
}

/** Deleting many runs, in the background. At least one filter. */
export interface StartPurge {
  /** Any of these. */
  status?: ("cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting")[];
  workflow?: string | null;
  /** One of these. */
  ids?: string[];
  /** The version of the workflow. */
  version?: number | null;
  /** The run that started them as its children. */
  parent_id?: string | null;
  id_prefix?: string | null;
  /** Created at this instant or later. */
  since?: string | null;
  /** Created before this instant. */
  until?: string | null;
  /** Ended at this instant or later. */
  finished_since?: string | null;
  /** Ended before this instant. */
  finished_until?: string | null;
  /** The name of a signal, an ask or an approval, or the id of a run; `@timer` for what a timer will wake. */
  waiting_for?: string | null;
  /** The class of the exception that it failed with. */
  error?: string | null;
  queue?: string | null;
  tags?: Record<string, string> | null;
  /** At most so many, the oldest first. */
  limit?: number;
  /** Only list the runs: nothing is done. */
  dry_run?: boolean;
  reason?: string;
  /** No child runs; false for all runs that the list of runs shows. A run whose root fits too is reached there. */
  roots_only?: boolean;
  /** Include runs that the engine makes for itself. */
  internal?: boolean;
  /** The person who asks for it. Only a caller that needs no key may say so; else it is the owner of the key. */
  by?: string | null;
  /** A repeated id names the same operation. Without one, the id is made of the header `Idempotency-Key`. */
  id?: string | null;
  /** Only runs that ended so many seconds ago. */
  older_than?: number | string;
}

/** A run to start. */
export interface StartRun {
  queue?: string | null;
  /** The key in the queue. */
  key?: string | null;
  priority?: number | null;
  /** How many slots of the queue a run takes; one unless given. */
  slots?: number | null;
  /**
   * The id of the run: a start with the same id gives the same run. Without one, the header `Idempotency-Key` makes it;
   * without that, the server does.
   */
  id?: string | null;
  /**
   * The answer when the id is taken: give that run, give it if it has not ended, refuse, refuse if it has not ended,
   * take its place at once, or take it when that run was cancelled and has ended.
   */
  on_conflict?: "attach" | "attach_open" | "cancel_open" | "reject" | "reject_open" | "replace";
  /** How long the run may take as a whole, from when a worker begins it. */
  timeout?: number | string | null;
  tags?: Record<string, string> | null;
  headers?: Record<string, string> | null;
  /** How long from now it is to begin. */
  delay?: number | string | null;
  /** The instant instead. */
  start_at?: string | null;
  /** How long after it is due a worker may begin it: else it fails, and no code of it runs. */
  begin_within?: number | string | null;
  /** The name of the workflow. */
  workflow: string;
  /** By name, or in a list. They are checked against the schema that workers have described. */
  arguments?: Record<string, unknown> | unknown[] | null;
  /** The newest version unless given. */
  version?: number | null;
}

/** Runs to start. */
export interface StartRuns {
  starts: StartRun[];
}

/** A run that was started, now or by an earlier request with the same id or key. */
export interface Started {
  id: string;
}

/** A run that an event has started. */
export interface StartedRun {
  workflow: string;
  run_id: string;
  /** false if the event had started it before: it was sent twice. */
  is_new: boolean;
}

/** Many starts. */
export interface StartedRuns {
  /** An answer for each, in the order of the starts. */
  items: StartOutcome[];
}

/** One step that a live worker runs: of Python, or a remote step of a worker in any language. */
export interface StepInfo {
  /** The name by which a document calls it: `shop.reserve`, or `gpu/resize` for a remote step. */
  name: string;
  /** The queue from which remote workers take it; empty for a step of Python. */
  queue: string;
  /**
   * The JSON Schema of its arguments, an object by name, or of the input of a remote step; null if its workers have not
   * described it.
   */
  arguments: Record<string, unknown> | null;
  /** The JSON Schema of its result; null if it can be anything. */
  result: Record<string, unknown> | null;
  /** How many live workers run it. */
  workers: number;
}

/** The schemas of a remote step, for people and for checks of documents. */
export interface StepSchemas {
  /** The JSON Schema of its input: at most 8,192 bytes, 500 maps and lists, and 20 levels. */
  input?: Record<string, unknown> | null;
  /** The JSON Schema of its output, with the same limits. */
  output?: Record<string, unknown> | null;
}

/** A step that runs now, as people and programs see it: what `run.steps()` gives. */
export interface StepUnderWay {
  /** The run that called it: a child of the run that was asked for, or that run itself. */
  run_id: string;
  /** The call in its run, as the journal names it: `charge`, `charge#2`. */
  call: string;
  name: string;
  attempt: number;
  /** How many attempts it may have, or null if they have no limit. */
  attempts_max: number | null;
  /** When this attempt began. */
  since: string;
  /** The worker that runs it, or the program outside that has claimed it. */
  worker: string;
  /** When it last gave a heartbeat; null if it gave none. */
  heartbeat_at: string | null;
  /** The progress that the step last reported with a heartbeat. */
  progress: unknown;
  /** How the attempt before this one failed. */
  last_failure: string;
  /** By the names of the parameters. Only on request, and if they are known here: see `run.steps`. */
  arguments: unknown;
  /** For a remote step: the id of its task. */
  task: string;
}

/** Steps of workers. */
export interface StepsList {
  items: StepInfo[];
}

/** The steps of a run that run now. */
export interface StepsView {
  /** The oldest first. */
  items: StepUnderWay[];
  /** The time of the store. */
  now: string;
}

/** The run has ended, and its stream with it. */
export interface StreamEnd {
  /** The position of the last item that was sent. */
  position: number;
}

/** An item of a stream, and where it comes from. */
export interface StreamItem {
  /** The name of the stream. */
  stream: string;
  /** 1 for the first; `run.stream(name, after=item.position)` goes on behind it. */
  position: number;
  value: unknown;
  /** The call of the step that emitted it, as `history` has it; empty for the workflow itself. */
  call: string;
  /** The attempt of that step. Items of an earlier one (`attempt` and `epoch`) of the same call were taken back. */
  attempt: number;
  /** How often the run had been claimed: a step whose worker was lost is called again with the same attempt. */
  epoch: number;
}

/** A stream of a run. */
export interface StreamView {
  name: string;
  /** How many items it has had. */
  items: number;
}

/** The streams of a run, by name. */
export interface StreamsList {
  items: StreamView[];
}

/** A task that a program has claimed. */
export interface Task {
  /** The id of its run. */
  id: string;
  /** A secret, to be sent with everything that is said of the task: with it the task may be ended. */
  lease: string;
  /** How long the lease lasts from now on, unless a heartbeat renews it. */
  lasts: string;
  step: string;
  queue: string;
  /** The argument of the step as plain JSON. */
  input: unknown;
  /** How many programs have claimed it, this one included. */
  claims: number;
  /** The progress in the last heartbeat, of whichever program; null if there was none. */
  progress: unknown;
  /** The JSON Schema that the output has to fit; null if any value will do. */
  output_schema: Record<string, unknown> | null;
}

/** The answer to a heartbeat of a program that works on a task. */
export interface TaskNotice {
  /** Whether the workflow no longer wants it: the program may stop, and fail the task. */
  is_cancelled: boolean;
  reason: string;
  /** How long the lease lasts from now on. */
  lasts: string;
}

/** The triggers that start runs of a workflow, beside schedules and people. */
export interface TriggerInfo {
  workflow: string;
  /** The version of the workflow that the new runs have. */
  version: number;
  /** Types of events, and patterns. */
  events: string[];
  /** Paths. */
  webhooks: string[];
}

/** How to start a run now. */
export interface TriggerSchedule {
  /** The id of the run. Without one, the header `Idempotency-Key` makes it; without that, the server does. */
  id?: string | null;
  overlap?: "allow" | "skip" | "terminate_previous" | null;
}

/** Triggers. */
export interface TriggersList {
  items: TriggerInfo[];
}

/** It is not; an operator sees why with `GET /api/v1/health`. */
export interface Unhealthy {
  status: "unavailable";
}

/** Messages that a run has not read. */
export interface UnreadList {
  items: UnreadMessage[];
}

/** A message to a run that its code has not read, as far as the store knows. */
export interface UnreadMessage {
  /** The run of the tree that it is for. */
  run_id: string;
  /** The kind of the message; `end` is the end of a run that this one started or waits for. */
  kind: "ask" | "cancel" | "decision" | "end" | "pause" | "promise" | "resume" | "signal" | "skip";
  /** The name of the signal or the ask; of a promise or a decision its call; of an end the id of that run. */
  name: string;
  /** The key that the sender gave; empty if none. */
  key: string;
  /** When it was sent; of a message that a worker has taken, when that was. */
  at: string;
  /**
   * How far it is: - `inbox`: no worker has taken it yet. - `buffered`: a worker has put it into the journal, and the
   * code of the run has not asked for it; an ask has no answer. - `taken`: the same, but a worker has had the run since
   * it was last suspended, so that its code may have read it.
   */
  state: "buffered" | "inbox" | "taken";
  /** The content of the message, as plain values; null if it has none, or if that cannot be read here. */
  value: unknown;
}

/** One thing that a run waits for. */
export interface Wait {
  /** The kind of the wait. */
  kind: "approval" | "ask" | "child" | "limit" | "promise" | "retry" | "signal" | "timer";
  /** Which one: the name of a signal, an ask or an approval, the call of a step, the id of a child or a promise. */
  name: string;
  /** When the wait ends by itself. */
  until: string | null;
  /** Details: what an approval is about, and who is asked. */
  detail: string;
  /** The run of the tree that waits. */
  run_id: string;
}

/** A key of which runs wait for a slot. */
export interface WaitingKey {
  /** Empty for the runs without one. */
  key: string;
  /** Its runs that wait, counted up to 1,000. */
  in_line: Count;
  /** How long the oldest run at the head of its lines has waited. */
  waiting: string;
}

/** The wait of a run, or how it ended. */
export interface WhyView {
  id: string;
  status: "cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting";
  /** One sentence. */
  why: string;
  /** The verbs that help next, as data. */
  advice: Advice[];
  /** The advice as requests. */
  next: string;
}

/** A session of a worker, and its lease. */
export interface Worker {
  /** Its session: a worker that starts again has another one. */
  id: string;
  /** Its name for people. */
  name: string;
  /** `gone`: it has ended, or its lease has run out; others take over what it owns. */
  status: "gone" | "live";
  /** When its session began. */
  started_at: string;
  /** When its lease runs out if it is not renewed; null if it has no end. */
  expires_at: string | null;
  /** The time until `expires_at`, counted from when this was read, by the clock of the store. */
  expires_in: string | null;
  /** The keeper of its lease: `store`, `none`, or the place of an etcd. */
  lease: string;
  /** The process it lives in, as its machine knows it; empty if there is no telling. */
  process: string;
  /** Trees of runs that it owns. */
  runs: number;
  /** The definitions that it can run, as `workflow@version`. */
  definitions: string[];
  /** The definitions of Outlive itself that it can run, such as the workflow of verbs for many runs. */
  built_in: string[];
  /**
   * The steps that it runs, by the names that documents have for them: `shop.reserve`, or `gpu/resize` for a remote
   * worker.
   */
  steps: string[];
  /** The queues from which it takes runs, `default` for the runs without one; null if it takes from all. */
  queues: string[] | null;
  /** The fault of its row, if the row is damaged. */
  fault: string;
}

/** Workers. */
export interface WorkersList {
  items: Worker[];
}

/** One workflow in one version, as workers have described it. */
export interface WorkflowInfo {
  name: string;
  version: number;
  /** The JSON Schema of its arguments, an object by name; null until a worker has described it. */
  arguments: Record<string, unknown> | null;
  /** The JSON Schema of its result; null if it can be anything. */
  result: Record<string, unknown> | null;
  /** How many live workers can run it. */
  workers: number;
}

/** Workflows. */
export interface WorkflowsList {
  items: WorkflowInfo[];
}

/** What `approvals.list` may be asked for. */
export interface ApprovalsListQuery {
  /** Any of these. */
  status?: ("cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting")[];
  workflow?: string;
  /** One of these. */
  ids?: string[];
  /** The version of the workflow. */
  version?: number;
  /** The run that started them as its children. */
  parent_id?: string;
  id_prefix?: string;
  /** Created at this instant or later. */
  since?: string;
  /** Created before this instant. */
  until?: string;
  /** Ended at this instant or later. */
  finished_since?: string;
  /** Ended before this instant. */
  finished_until?: string;
  /** The name of a signal, an ask or an approval, or the id of a run; `@timer` for what a timer will wake. */
  waiting_for?: string;
  /** The class of the exception that it failed with. */
  error?: string;
  queue?: string;
  /** `name=value`; may be given several times, and all of them count. */
  tag?: string[];
  /** No child runs. */
  roots_only?: boolean;
  /** Include runs that the engine makes for itself, such as chunks of batches. */
  internal?: boolean;
  /** Only what this person, or this group, may decide. */
  assignee?: string;
  /** The number of runs whose requests a page has. */
  limit?: number;
  /** `next` or `previous` of another page with the same parameters. */
  after?: string;
}

/** What `asks.answer` may be asked for. */
export interface AsksAnswerQuery {
  /** How long to wait for it, up to a limit of the server; 0 for no wait. */
  wait?: number | string;
}

/** What `audit.list` may be asked for. */
export interface AuditListQuery {
  actor?: string;
  verb?: string;
  /** The id of a run or of a key, the name of a workflow, a schedule, a queue or a flow. */
  target?: string;
  since?: string;
  until?: string;
  limit?: number;
  /** `next` of the page before. */
  after?: string;
}

/** What `audit.verify` may be asked for. */
export interface AuditVerifyQuery {
  /** `head` of an earlier check: rows that were cut off or pruned since are noticed. */
  since?: string;
  /** How many seconds rows are kept; as the server's settings say unless given. */
  keep?: number;
}

/** What `batches.items` may be asked for. */
export interface BatchesItemsQuery {
  /**
   * The position of the last item that is known already, or the id of its message; the header `Last-Event-ID` goes
   * before it.
   */
  after?: string;
}

/** What `batches.list` may be asked for. */
export interface BatchesListQuery {
  status?: ("cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting")[];
  /** `name=value`; may be given several times, and all of them count. */
  tag?: string[];
  since?: string;
  until?: string;
  limit?: number;
  after?: string;
}

/** What `batches.outcomes` may be asked for. */
export interface BatchesOutcomesQuery {
  /** The place of the last item of the page before. */
  after?: number;
  limit?: number;
  status?: "failed" | "succeeded";
}

/** What `bulk.list` may be asked for. */
export interface BulkListQuery {
  limit?: number;
  after?: string;
}

/** What `deploys.documents` may be asked for. */
export interface DeploysDocumentsQuery {
  /** `next` of the page before. */
  after?: string;
}

/** What `flows.delete` may be asked for. */
export interface FlowsDeleteQuery {
  reason?: string;
  /** The person who does it. Only a caller that needs no key may say so; else it is the owner of the key. */
  by?: string;
  /** Delete it also while runs of it are open. */
  force?: boolean;
  expected?: number;
}

/** What `flows.get` may be asked for. */
export interface FlowsGetQuery {
  /** The published one unless given. */
  revision?: number;
  draft?: boolean;
}

/** What `flows.graph` may be asked for. */
export interface FlowsGraphQuery {
  /** The published one unless given. */
  revision?: number;
  draft?: boolean;
}

/** What `inbox.list` may be asked for. */
export interface InboxListQuery {
  limit?: number;
}

/** What `runs.count` may be asked for. */
export interface RunsCountQuery {
  /** Any of these. */
  status?: ("cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting")[];
  workflow?: string;
  /** One of these. */
  ids?: string[];
  /** The version of the workflow. */
  version?: number;
  /** The run that started them as its children. */
  parent_id?: string;
  id_prefix?: string;
  /** Created at this instant or later. */
  since?: string;
  /** Created before this instant. */
  until?: string;
  /** Ended at this instant or later. */
  finished_since?: string;
  /** Ended before this instant. */
  finished_until?: string;
  /** The name of a signal, an ask or an approval, or the id of a run; `@timer` for what a timer will wake. */
  waiting_for?: string;
  /** The class of the exception that it failed with. */
  error?: string;
  queue?: string;
  /** `name=value`; may be given several times, and all of them count. */
  tag?: string[];
  /** No child runs. */
  roots_only?: boolean;
  /** Include runs that the engine makes for itself, such as chunks of batches. */
  internal?: boolean;
  limit?: number;
}

/** What `runs.count_by` may be asked for. */
export interface RunsCountByQuery {
  /** Any of these. */
  status?: ("cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting")[];
  workflow?: string;
  /** One of these. */
  ids?: string[];
  /** The version of the workflow. */
  version?: number;
  /** The run that started them as its children. */
  parent_id?: string;
  id_prefix?: string;
  /** Created at this instant or later. */
  since?: string;
  /** Created before this instant. */
  until?: string;
  /** Ended at this instant or later. */
  finished_since?: string;
  /** Ended before this instant. */
  finished_until?: string;
  /** The name of a signal, an ask or an approval, or the id of a run; `@timer` for what a timer will wake. */
  waiting_for?: string;
  /** The class of the exception that it failed with. */
  error?: string;
  queue?: string;
  /** `name=value`; may be given several times, and all of them count. */
  tag?: string[];
  /** No child runs. */
  roots_only?: boolean;
  /** Include runs that the engine makes for itself, such as chunks of batches. */
  internal?: boolean;
  limit?: number;
  by?: "queue" | "status" | "workflow";
}

/** What `runs.follow` may be asked for. */
export interface RunsFollowQuery {
  /** The id of the last message that is known already; the header `Last-Event-ID` goes before it. */
  after?: string;
  /** Follow these streams too. */
  stream?: string[];
  /** Payloads of events with more bytes are left out, and `{"[large]": bytes}` says so in their place. */
  payload_bytes?: number;
}

/** What `runs.follow_list` may be asked for. */
export interface RunsFollowListQuery {
  /** Any of these. */
  status?: ("cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting")[];
  workflow?: string;
  /** One of these. */
  ids?: string[];
  /** The version of the workflow. */
  version?: number;
  /** The run that started them as its children. */
  parent_id?: string;
  id_prefix?: string;
  /** Created at this instant or later. */
  since?: string;
  /** Created before this instant. */
  until?: string;
  /** Ended at this instant or later. */
  finished_since?: string;
  /** Ended before this instant. */
  finished_until?: string;
  /** The name of a signal, an ask or an approval, or the id of a run; `@timer` for what a timer will wake. */
  waiting_for?: string;
  /** The class of the exception that it failed with. */
  error?: string;
  queue?: string;
  /** `name=value`; may be given several times, and all of them count. */
  tag?: string[];
  /** No child runs. */
  roots_only?: boolean;
  /** Include runs that the engine makes for itself, such as chunks of batches. */
  internal?: boolean;
  /** The newest so many. */
  limit?: number;
}

/** What `runs.follow_stream` may be asked for. */
export interface RunsFollowStreamQuery {
  /**
   * The position of the last item that is known already, or the id of its message; the header `Last-Event-ID` goes
   * before it.
   */
  after?: string;
}

/** What `runs.history` may be asked for. */
export interface RunsHistoryQuery {
  /** The number of the last event that is known already. */
  after?: number;
  /** At most so many; fewer come when they are large, and `next` says whether there are more. */
  limit?: number;
  /** Payloads with more bytes are left out, and `{"[large]": bytes}` says so in their place. */
  payload_bytes?: number;
}

/** What `runs.list` may be asked for. */
export interface RunsListQuery {
  /** Any of these. */
  status?: ("cancelled" | "continued" | "damaged" | "failed" | "parked" | "pending" | "running" | "succeeded" | "timed_out" | "waiting")[];
  workflow?: string;
  /** One of these. */
  ids?: string[];
  /** The version of the workflow. */
  version?: number;
  /** The run that started them as its children. */
  parent_id?: string;
  id_prefix?: string;
  /** Created at this instant or later. */
  since?: string;
  /** Created before this instant. */
  until?: string;
  /** Ended at this instant or later. */
  finished_since?: string;
  /** Ended before this instant. */
  finished_until?: string;
  /** The name of a signal, an ask or an approval, or the id of a run; `@timer` for what a timer will wake. */
  waiting_for?: string;
  /** The class of the exception that it failed with. */
  error?: string;
  queue?: string;
  /** `name=value`; may be given several times, and all of them count. */
  tag?: string[];
  /** No child runs. */
  roots_only?: boolean;
  /** Include runs that the engine makes for itself, such as chunks of batches. */
  internal?: boolean;
  /** Newest first, or oldest first. */
  order?: "-created_at" | "created_at";
  limit?: number;
  /** `next` or `previous` of another page with the same parameters. */
  after?: string;
}

/** What `runs.list_stuck` may be asked for. */
export interface RunsListStuckQuery {
  limit?: number;
  /** The id of the last run of the page before. */
  before?: string;
}

/** What `runs.result` may be asked for. */
export interface RunsResultQuery {
  /** How long to wait for it, up to a limit of the server; 0 for no wait. */
  wait?: number | string;
}

/** What `runs.steps` may be asked for. */
export interface RunsStepsQuery {
  /** Whether to give the arguments too, by the names of the parameters and without what is redacted. */
  arguments?: boolean;
}

/** What `schedules.list` may be asked for. */
export interface SchedulesListQuery {
  limit?: number;
  /** The last name of the page before. */
  after?: string;
}

/** What `workflows.graph` may be asked for. */
export interface WorkflowsGraphQuery {
  /** The newest unless given. */
  version?: number;
}

export class ApiOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * This API for people: every operation on one page, which needs no other host.
   *
   * Needs the scope `viewer`.
   */
  docs(options?: RequestOptions): Promise<string> {
    return this.#to.text("GET", `/api/v1/docs`, { options });
  }

  /**
   * The style of the docs page.
   *
   * Needs the scope `viewer`.
   */
  docsStyle(options?: RequestOptions): Promise<string> {
    return this.#to.text("GET", `/api/v1/docs.css`, { options });
  }

  /**
   * The OpenAPI 3.1 document of this API.
   *
   * Needs the scope `viewer`.
   */
  openapi(options?: RequestOptions): Promise<unknown> {
    return this.#to.json("GET", `/api/v1/openapi.json`, { options });
  }
}

export class ApprovalsOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Approve what a run asks for; the decision is durable when this answers.
   *
   * The first decision is the only one: a later one gets it back, and `is_first` says whether it is yours.
   *
   * Needs the scope `operator`.
   */
  approve(runId: string, name: string, body?: Decide, options?: RequestOptions): Promise<Approval> {
    return this.#to.json("POST", `/api/v1/runs/${encodeURIComponent(runId)}/approvals/${encodeURIComponent(name)}/approve`, { body, options });
  }

  /**
   * Make a link with which a person decides without a key: once, in this way, until it expires.
   *
   * A link for another person needs the scope admin: its owner decides under that person's name.
   *
   * Needs the scope `operator`.
   */
  createLink(runId: string, name: string, body: CreateLink, options?: RequestOptions): Promise<NewLink> {
    return this.#to.json("POST", `/api/v1/runs/${encodeURIComponent(runId)}/approvals/${encodeURIComponent(name)}/links`, { body, options });
  }

  /**
   * Requests without a decision, of the oldest runs first: the inbox of one person, or of all.
   *
   * Needs the scope `viewer`.
   */
  list(query?: ApprovalsListQuery, options?: RequestOptions): Promise<ApprovalsPage> {
    return this.#to.json("GET", `/api/v1/approvals`, { query, options });
  }

  /**
   * Reject what a run asks for. As `approve`, and the form may be left out.
   *
   * Needs the scope `operator`.
   */
  reject(runId: string, name: string, body?: Decide, options?: RequestOptions): Promise<Approval> {
    return this.#to.json("POST", `/api/v1/runs/${encodeURIComponent(runId)}/approvals/${encodeURIComponent(name)}/reject`, { body, options });
  }

  /**
   * The page of a link: what it decides, and a button. Nothing happens, however often it is opened.
   *
   * Needs no key.
   */
  showLink(token: string, options?: RequestOptions): Promise<string> {
    return this.#to.text("GET", `/decide/${encodeURIComponent(token)}`, { options });
  }

  /**
   * Decide with a link, once. A browser gets a page that says what was decided.
   *
   * Needs no key.
   */
  useLink(token: string, body?: DecideByLink, options?: RequestOptions): Promise<Approval> {
    return this.#to.json("POST", `/decide/${encodeURIComponent(token)}`, { body, options });
  }
}

export class AsksOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * The answer to an ask that was sent before, by any process.
   *
   * Needs the scope `viewer`.
   */
  answer(runId: string, name: string, key: string, query?: AsksAnswerQuery, options?: RequestOptions): Promise<AnswerView | NotAnswered> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/asks/${encodeURIComponent(name)}/${encodeURIComponent(key)}`, { query, options });
  }
}

export class AuditOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * The actions of people and keys, also refused ones.
   *
   * Needs the scope `admin`.
   */
  list(query?: AuditListQuery, options?: RequestOptions): Promise<ActionsPage> {
    return this.#to.json("GET", `/api/v1/audit`, { query, options });
  }

  /**
   * Check every row of the log against the one before it, and what was pruned against what is to be kept.
   *
   * Needs the scope `admin`.
   */
  verify(query?: AuditVerifyQuery, options?: RequestOptions): Promise<AuditCheck> {
    return this.#to.json("GET", `/api/v1/audit/verify`, { query, options });
  }
}

export class BatchesOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * A batch: how many items have ended, and how.
   *
   * Needs the scope `viewer`.
   */
  info(batchId: string, options?: RequestOptions): Promise<BatchInfo> {
    return this.#to.json("GET", `/api/v1/batches/${encodeURIComponent(batchId)}`, { options });
  }

  /**
   * The items of a batch as they finish, as server-sent events; items that have finished before come first.
   *
   * Messages: `item` (as `GET /batches/{batch_id}/items` has it), `end` (it has ended, or nothing more comes until
   * the run `parked` is resumed). A reader that comes again with the last id it has seen (`Last-Event-ID`) gets every
   * item that it may not have; it may have some of them, and knows them by their `index`.
   *
   * Needs the scope `viewer`.
   */
  items(batchId: string, query?: BatchesItemsQuery, options?: RequestOptions): AsyncGenerator<Message<"item", ItemView> | Message<"end", BatchEnd>> {
    return this.#to.follow("GET", `/api/v1/batches/${encodeURIComponent(batchId)}/follow`, { query, options });
  }

  /**
   * A page of the batches that fit, the newest first, each with how many of its rows have ended, and how.
   *
   * Needs the scope `viewer`.
   */
  list(query?: BatchesListQuery, options?: RequestOptions): Promise<BatchesPage> {
    return this.#to.json("GET", `/api/v1/batches`, { query, options });
  }

  /**
   * Items of a batch that have ended, in the order of their rows; those under way are not in it yet.
   *
   * A page has fewer than were asked for where they are large, and `next` says whether there are more.
   *
   * Needs the scope `viewer`.
   */
  outcomes(batchId: string, query?: BatchesOutcomesQuery, options?: RequestOptions): Promise<ItemsPage> {
    return this.#to.json("GET", `/api/v1/batches/${encodeURIComponent(batchId)}/items`, { query, options });
  }

  /**
   * Start another batch, of the rows of this one that have not succeeded.
   *
   * Needs the scope `operator`.
   */
  retry(batchId: string, body?: RetryBatch, options?: RequestOptions): Promise<Started> {
    return this.#to.json("POST", `/api/v1/batches/${encodeURIComponent(batchId)}/retry`, { body, options });
  }

  /**
   * Start a run of a workflow for each of many rows, each durable on its own. A row is the one argument.
   *
   * Needs the scope `operator`.
   */
  start(body: StartBatch, options?: RequestOptions): Promise<Started> {
    return this.#to.json("POST", `/api/v1/batches`, { body, options });
  }
}

export class BulkOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Ask the runs that fit to stop: open runs unless `status` says so.
   *
   * Needs the scope `operator`.
   */
  cancel(body: BulkOfTrees, options?: RequestOptions): Promise<Outcomes> {
    return this.#to.json("POST", `/api/v1/bulk/cancel`, { body, options });
  }

  /**
   * Verbs for many runs, the newest first, each with how far it has come.
   *
   * Needs the scope `viewer`.
   */
  list(query?: BulkListQuery, options?: RequestOptions): Promise<BulkPageView> {
    return this.#to.json("GET", `/api/v1/bulk/operations`, { query, options });
  }

  /**
   * Let the runs that fit, each with its tree, begin nothing more: open runs unless `status` says so.
   *
   * `bulk.resume` lets them go on.
   *
   * Needs the scope `operator`.
   */
  pause(body: PauseRuns, options?: RequestOptions): Promise<Outcomes> {
    return this.#to.json("POST", `/api/v1/bulk/pause`, { body, options });
  }

  /**
   * A verb for many runs: how far it has come, and which runs have refused.
   *
   * It is stopped as every run is: `POST /runs/{run_id}/cancel`; what it has done stays.
   *
   * Needs the scope `viewer`.
   */
  progress(operationId: string, options?: RequestOptions): Promise<BulkProgress> {
    return this.#to.json("GET", `/api/v1/bulk/operations/${encodeURIComponent(operationId)}`, { options });
  }

  /**
   * Delete runs that have ended, with everything of them, for good. At least one filter.
   *
   * With the header `Idempotency-Key`, at most 1,000 of them.
   *
   * Needs the scope `admin`.
   */
  purge(body: PurgeRuns, options?: RequestOptions): Promise<Purge> {
    return this.#to.json("POST", `/api/v1/bulk/purge`, { body, options });
  }

  /**
   * Let all parked runs go on, or only parked runs that fit a filter; with `dry_run` only list them.
   *
   * Runs whose worker is gone need none of this: another worker takes them over by itself.
   *
   * Needs the scope `operator`.
   */
  resume(body?: Bulk, options?: RequestOptions): Promise<Outcomes> {
    return this.#to.json("POST", `/api/v1/bulk/resume`, { body, options });
  }

  /**
   * Let the runs that fit go on at what failed: runs that ended badly unless `status` says so.
   *
   * Needs the scope `operator`.
   */
  retry(body: BulkOfTrees, options?: RequestOptions): Promise<Outcomes> {
    return this.#to.json("POST", `/api/v1/bulk/retry`, { body, options });
  }

  /**
   * Do something to all runs that fit, in the background.
   *
   * Workers do it, thousands of runs a minute, and go on when this server, the caller or one of them is killed. It is
   * durable when this answers. Sent again with the same `id`, or with the same header `Idempotency-Key`, it is the same
   * operation.
   *
   * Needs the scope `operator`.
   */
  start(body: StartBulk, options?: RequestOptions): Promise<Started> {
    return this.#to.json("POST", `/api/v1/bulk/operations`, { body, options });
  }

  /**
   * Delete runs that have ended, with everything of them, for good, in the background.
   *
   * Needs the scope `admin`.
   */
  startPurge(body: StartPurge, options?: RequestOptions): Promise<Started> {
    return this.#to.json("POST", `/api/v1/bulk/operations/purge`, { body, options });
  }
}

export class DeadLettersOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Messages that the code of a run, and of its children, could not read, oldest first.
   *
   * Values that are too large to be shown together are left out, and `{"[large]": bytes}` says so in their place; the
   * history has them.
   *
   * Needs the scope `viewer`.
   */
  list(runId: string, options?: RequestOptions): Promise<DeadLettersList> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/dead-letters`, { options });
  }
}

export class DeploysOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * The documents of flows that open runs may be of, in all revisions, for `outlive check-deploy`.
   *
   * Needs the scope `admin`.
   */
  documents(query?: DeploysDocumentsQuery, options?: RequestOptions): Promise<PinnedDocuments> {
    return this.#to.json("GET", `/api/v1/deploys/documents`, { query, options });
  }

  /**
   * Journals of open runs with nothing hidden, for `outlive check-deploy`. Up to 50 runs at once.
   *
   * Needs the scope `admin`.
   */
  journals(body: ReadJournals, options?: RequestOptions): Promise<Journals> {
    return this.#to.json("POST", `/api/v1/deploys/journals`, { body, options });
  }
}

export class EventsOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Deliver events of these types to an address, from now on.
   *
   * A sink that comes with a key names a secret only for servers that the operator lists for it.
   *
   * Needs the scope `admin`.
   */
  addSink(name: string, body: SetSink, options?: RequestOptions): Promise<Done> {
    return this.#to.json("PUT", `/api/v1/sinks/${encodeURIComponent(name)}`, { body, options });
  }

  /**
   * Start no runs of a workflow whose code is gone for good.
   *
   * Needs the scope `admin`.
   */
  forget(workflow: string, options?: RequestOptions): Promise<Done> {
    return this.#to.json("DELETE", `/api/v1/triggers/${encodeURIComponent(workflow)}`, { options });
  }

  /**
   * Deliver nothing more to a sink. Deliveries that are under way fail.
   *
   * Needs the scope `admin`.
   */
  removeSink(name: string, options?: RequestOptions): Promise<Done> {
    return this.#to.json("DELETE", `/api/v1/sinks/${encodeURIComponent(name)}`, { options });
  }

  /**
   * Send an event: every workflow that has a trigger for it gets one run. The same event again starts nothing.
   *
   * Needs the scope `operator`.
   */
  send(body: SendEvent, options?: RequestOptions): Promise<Sent> {
    return this.#to.json("POST", `/api/v1/events`, { body, options });
  }

  /**
   * Where events are delivered to, over HTTP.
   *
   * Needs the scope `viewer`.
   */
  sinks(options?: RequestOptions): Promise<SinksList> {
    return this.#to.json("GET", `/api/v1/sinks`, { options });
  }

  /**
   * The workflows that events and webhooks start, by name.
   *
   * Needs the scope `viewer`.
   */
  triggers(options?: RequestOptions): Promise<TriggersList> {
    return this.#to.json("GET", `/api/v1/triggers`, { options });
  }
}

export class FlowsOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Check a document and publish it as the next revision of its name. The same content again changes nothing.
   *
   * Needs the scope `admin`.
   */
  apply(body: ApplyFlow, options?: RequestOptions): Promise<Flow> {
    return this.#to.json("POST", `/api/v1/flows`, { body, options });
  }

  /**
   * Say what is wrong with a document, each mistake with its line, and draw it; nothing is stored, nothing runs.
   *
   * It is checked with the steps that live workers run, unless the key is for some workflows or tags. Steps that neither
   * workers nor this server have are warnings: workers that begin later may have them.
   *
   * Needs the scope `viewer`.
   */
  check(body: CheckFlow, options?: RequestOptions): Promise<CheckedView> {
    return this.#to.json("POST", `/api/v1/flows/check`, { body, options });
  }

  /**
   * Take a flow out of the library. Its runs stay.
   *
   * Needs the scope `admin`.
   */
  delete(name: string, query?: FlowsDeleteQuery, options?: RequestOptions): Promise<Done> {
    return this.#to.json("DELETE", `/api/v1/flows/${encodeURIComponent(name)}`, { query, options });
  }

  /**
   * Let a flow start no more runs; its triggers rest. Runs under way go on.
   *
   * Needs the scope `admin`.
   */
  disable(name: string, body?: Attributed, options?: RequestOptions): Promise<Flow> {
    return this.#to.json("POST", `/api/v1/flows/${encodeURIComponent(name)}/disable`, { body, options });
  }

  /**
   * Forget the draft of a flow.
   *
   * Needs the scope `admin`.
   */
  discardDraft(name: string, options?: RequestOptions): Promise<Flow> {
    return this.#to.json("DELETE", `/api/v1/flows/${encodeURIComponent(name)}/draft`, { options });
  }

  /**
   * Let a flow start runs again, by name and by its triggers.
   *
   * Needs the scope `admin`.
   */
  enable(name: string, options?: RequestOptions): Promise<Flow> {
    return this.#to.json("POST", `/api/v1/flows/${encodeURIComponent(name)}/enable`, { options });
  }

  /**
   * The document of a flow: of the published revision unless another one, or the draft, is asked for.
   *
   * Needs the scope `viewer`.
   */
  get(name: string, query?: FlowsGetQuery, options?: RequestOptions): Promise<DocumentView> {
    return this.#to.json("GET", `/api/v1/flows/${encodeURIComponent(name)}/document`, { query, options });
  }

  /**
   * The steps of a flow as boxes and arrows, with the line of each in the document.
   *
   * Needs the scope `viewer`.
   */
  graph(name: string, query?: FlowsGraphQuery, options?: RequestOptions): Promise<GraphView> {
    return this.#to.json("GET", `/api/v1/flows/${encodeURIComponent(name)}/graph`, { query, options });
  }

  /**
   * The revisions of a flow: who published which document, when, and why.
   *
   * Needs the scope `viewer`.
   */
  history(name: string, options?: RequestOptions): Promise<RevisionsList> {
    return this.#to.json("GET", `/api/v1/flows/${encodeURIComponent(name)}/history`, { options });
  }

  /**
   * One flow of the library.
   *
   * Needs the scope `viewer`.
   */
  info(name: string, options?: RequestOptions): Promise<Flow> {
    return this.#to.json("GET", `/api/v1/flows/${encodeURIComponent(name)}`, { options });
  }

  /**
   * Every flow of the library, by name.
   *
   * Needs the scope `viewer`.
   */
  list(options?: RequestOptions): Promise<FlowsList> {
    return this.#to.json("GET", `/api/v1/flows`, { options });
  }

  /**
   * Check the draft of a flow and publish it.
   *
   * Needs the scope `admin`.
   */
  publish(name: string, body?: PublishFlow, options?: RequestOptions): Promise<Flow> {
    return this.#to.json("POST", `/api/v1/flows/${encodeURIComponent(name)}/publish`, { body, options });
  }

  /**
   * Publish the document of an earlier revision again, as a new revision.
   *
   * Needs the scope `admin`.
   */
  rollback(name: string, body?: RollbackFlow, options?: RequestOptions): Promise<Flow> {
    return this.#to.json("POST", `/api/v1/flows/${encodeURIComponent(name)}/rollback`, { body, options });
  }

  /**
   * Keep a document as the draft of its flow. Nothing runs it before it is published.
   *
   * Needs the scope `admin`.
   */
  saveDraft(body: ApplyFlow, options?: RequestOptions): Promise<Flow> {
    return this.#to.json("POST", `/api/v1/flows/drafts`, { body, options });
  }

  /**
   * Start a run of a flow; its input is checked against the document. As a start of a workflow otherwise.
   *
   * Needs the scope `operator`.
   */
  start(name: string, body?: StartFlow, options?: RequestOptions): Promise<Started> {
    return this.#to.json("POST", `/api/v1/flows/${encodeURIComponent(name)}/runs`, { body, options });
  }
}

export class HealthOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * How the engine of this server is: its store, its worker, its resources.
   *
   * Needs the scope `viewer`.
   */
  get(options?: RequestOptions): Promise<Health> {
    return this.#to.json("GET", `/api/v1/health`, { options });
  }

  /**
   * Whether the process answers. Restart it if it does not.
   *
   * Needs no key.
   */
  live(options?: RequestOptions): Promise<Healthy> {
    return this.#to.json("GET", `/health/live`, { options });
  }

  /**
   * Figures of this engine and its store, for Prometheus.
   *
   * Needs the scope `viewer`.
   */
  metrics(options?: RequestOptions): Promise<string> {
    return this.#to.text("GET", `/metrics`, { options });
  }

  /**
   * Whether it can serve now: its store answers, its worker holds its lease. Send it no requests while it cannot.
   *
   * Needs no key.
   */
  ready(options?: RequestOptions): Promise<Healthy> {
    return this.#to.json("GET", `/health/ready`, { options });
  }

  /**
   * Whether it has started: its engine runs.
   *
   * Needs no key.
   */
  startup(options?: RequestOptions): Promise<Healthy> {
    return this.#to.json("GET", `/health/startup`, { options });
  }
}

export class InboxOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Messages to a run, and to its children, that their code has not read, oldest first.
   *
   * While a worker has the run, it does not say what the code reads: such messages have the state `taken`. Values that
   * are too large to be shown together are left out, and `{"[large]": bytes}` says so in their place.
   *
   * Needs the scope `viewer`.
   */
  list(runId: string, query?: InboxListQuery, options?: RequestOptions): Promise<UnreadList> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/inbox`, { query, options });
  }
}

export class KeysOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Make a key. Its secret is in the answer, and nowhere else.
   *
   * Needs the scope `admin`.
   */
  create(body: CreateKey, options?: RequestOptions): Promise<NewKey> {
    return this.#to.json("POST", `/api/v1/keys`, { body, options });
  }

  /**
   * All keys, the newest first; also revoked and expired ones.
   *
   * Needs the scope `admin`.
   */
  list(options?: RequestOptions): Promise<KeysList> {
    return this.#to.json("GET", `/api/v1/keys`, { options });
  }

  /**
   * Let a key be valid no longer: at once, on all servers. Twice is fine.
   *
   * Needs the scope `admin`.
   */
  revoke(keyId: string, body?: RevokeKey, options?: RequestOptions): Promise<ApiKey> {
    return this.#to.json("POST", `/api/v1/keys/${encodeURIComponent(keyId)}/revoke`, { body, options });
  }
}

export class MeOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * The principal of this request, with its scopes, and the operations that it may use.
   *
   * Needs the scope `viewer`.
   */
  get(options?: RequestOptions): Promise<MeView> {
    return this.#to.json("GET", `/api/v1/me`, { options });
  }
}

export class OverviewOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * The state of the store, and everything that needs a person: the figures of the first page of the dashboard.
   *
   * It costs about the same whatever the number of runs; what was read is used again for a few seconds.
   *
   * Needs the scope `viewer`.
   */
  get(options?: RequestOptions): Promise<OverviewView> {
    return this.#to.json("GET", `/api/v1/overview`, { options });
  }
}

export class PromisesOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Settle a promise of a run with an error, which is raised where the run awaits it.
   *
   * Needs the scope `operator`.
   */
  fail(promiseId: string, body: Fail, options?: RequestOptions): Promise<SettledView> {
    return this.#to.json("POST", `/api/v1/promises/${encodeURIComponent(promiseId)}/fail`, { body, options });
  }

  /**
   * Settle a promise of a run with a value. It is settled once.
   *
   * Needs the scope `operator`.
   */
  resolve(promiseId: string, body?: Resolve, options?: RequestOptions): Promise<SettledView> {
    return this.#to.json("POST", `/api/v1/promises/${encodeURIComponent(promiseId)}/resolve`, { body, options });
  }
}

export class QueuesOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Every queue that has runs, that was changed, or that code declares; by name.
   *
   * Needs the scope `viewer`.
   */
  list(options?: RequestOptions): Promise<QueuesList> {
    return this.#to.json("GET", `/api/v1/queues`, { options });
  }

  /**
   * Give no more slots; runs that hold one go on, and new ones may be started.
   *
   * Needs the scope `operator`.
   */
  pause(name: string, body?: Attributed, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/queues/${encodeURIComponent(name)}/pause`, { body, options });
  }

  /**
   * Let the limits count again that code declares.
   *
   * Needs the scope `admin`.
   */
  reset(name: string, options?: RequestOptions): Promise<QueueState> {
    return this.#to.json("POST", `/api/v1/queues/${encodeURIComponent(name)}/reset`, { options });
  }

  /**
   * Give slots again.
   *
   * Needs the scope `operator`.
   */
  resume(name: string, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/queues/${encodeURIComponent(name)}/resume`, { options });
  }

  /**
   * Change limits of a queue, for all workers and until they are reset.
   *
   * Needs the scope `admin`.
   */
  set(name: string, body: SetQueue, options?: RequestOptions): Promise<QueueState> {
    return this.#to.json("PUT", `/api/v1/queues/${encodeURIComponent(name)}`, { body, options });
  }

  /**
   * How full a queue is, which runs hold its slots, and what it allows.
   *
   * Needs the scope `viewer`.
   */
  stats(name: string, options?: RequestOptions): Promise<QueueState> {
    return this.#to.json("GET", `/api/v1/queues/${encodeURIComponent(name)}`, { options });
  }
}

export class RunsOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Everything that a run and its children have asked people for, with who decided what and when.
   *
   * Needs the scope `viewer`.
   */
  approvals(runId: string, options?: RequestOptions): Promise<ApprovalsPage> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/approvals`, { options });
  }

  /**
   * Ask a run something, and wait for its answer, which it gives exactly once.
   *
   * The same key again is the same ask and has the same answer. If there is none yet when the time is over, the ask goes
   * on, and this is answered with 202 and the key. With `start`, the run is created in the same transaction if there is
   * none.
   *
   * Needs the scope `operator`.
   */
  ask(runId: string, name: string, body?: AskRun, options?: RequestOptions): Promise<AnswerView | NotAnswered> {
    return this.#to.json("POST", `/api/v1/runs/${encodeURIComponent(runId)}/asks/${encodeURIComponent(name)}`, { body, options });
  }

  /**
   * Ask a run to stop; it reaches its steps and children, wherever they run. Asking twice is asking once.
   *
   * Needs the scope `operator`.
   */
  cancel(runId: string, body?: Reasoned, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/runs/${encodeURIComponent(runId)}/cancel`, { body, options });
  }

  /**
   * Change an open run: its tags and its timeout, and of a run that no worker has begun its queue and its start.
   *
   * The change is durable when this answers; a worker that has the run applies it at once.
   *
   * Needs the scope `operator`.
   */
  change(runId: string, body: ChangeRun, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/runs/${encodeURIComponent(runId)}/change`, { body, options });
  }

  /**
   * How many runs fit. Counting ends at `limit`.
   *
   * Needs the scope `viewer`.
   */
  count(query?: RunsCountQuery, options?: RequestOptions): Promise<Count> {
    return this.#to.json("GET", `/api/v1/runs/count`, { query, options });
  }

  /**
   * How many runs fit, grouped by their status, workflow or queue, all at one moment.
   *
   * Counting a group ends at `limit`; a group without such runs is left out.
   *
   * Needs the scope `viewer`.
   */
  countBy(query?: RunsCountByQuery, options?: RequestOptions): Promise<RunCounts> {
    return this.#to.json("GET", `/api/v1/runs/count/groups`, { query, options });
  }

  /**
   * Make a token that a browser may hold: it follows this run for some minutes, and can do nothing else.
   *
   * It is for `runs.follow`, `runs.streams` and `runs.follow_stream` of this run, or for one stream of it alone. When it
   * has expired, when the key that it was made with is revoked, and when another run takes the id, it is refused, and
   * what is followed with it ends. Send it as `Authorization: Bearer ...`, never in an address.
   *
   * Needs the scope `viewer`.
   */
  createToken(runId: string, body?: CreateToken, options?: RequestOptions): Promise<NewRunToken> {
    return this.#to.json("POST", `/api/v1/runs/${encodeURIComponent(runId)}/tokens`, { body, options });
  }

  /**
   * Delete a run that has ended, with its children, its history and everything else of it, for good.
   *
   * Needs the scope `admin`.
   */
  delete(runId: string, options?: RequestOptions): Promise<Done> {
    return this.#to.json("DELETE", `/api/v1/runs/${encodeURIComponent(runId)}`, { options });
  }

  /**
   * The document of the flow that a run was started with, whatever was published since.
   *
   * Needs the scope `viewer`.
   */
  document(runId: string, options?: RequestOptions): Promise<DocumentView> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/document`, { options });
  }

  /**
   * Everything that happens to a run, as server-sent events, until it has ended.
   *
   * Messages: `journal` (an event of its tree), `run` (its row has changed), `published` (what it shows of itself),
   * `stream` (an item of a stream that was asked for), `end` (the run, when it has ended). A reader that comes again
   * with the last id it has seen (`Last-Event-ID`) gets what came after it; if that is nothing more, 204.
   *
   * Needs the scope `viewer`.
   */
  follow(runId: string, query?: RunsFollowQuery, options?: RequestOptions): AsyncGenerator<Message<"journal", Event> | Message<"run", Run> | Message<"published", Record<string, unknown>> | Message<"stream", StreamItem> | Message<"end", Run>> {
    return this.#to.follow("GET", `/api/v1/runs/${encodeURIComponent(runId)}/follow`, { query, options });
  }

  /**
   * A list of runs, live, as server-sent events: the newest that fit, then every change.
   *
   * Messages: `run` (it is new in the list, or has changed), `list` (once, after the first ones: the ids of all), `gone`
   * (it is in the list no longer). A reader that comes again with the last id it has seen (`Last-Event-ID`) gets the
   * runs that are new or have changed since, and `list`, which lets it drop the others. Readers share a list: it begins
   * and ends at a whole minute, `since` is rounded down and `until` up.
   *
   * Needs the scope `viewer`.
   */
  followList(query?: RunsFollowListQuery, options?: RequestOptions): AsyncGenerator<Message<"run", Run> | Message<"list", ListedRuns> | Message<"gone", GoneRun>> {
    return this.#to.follow("GET", `/api/v1/runs/follow`, { query, options });
  }

  /**
   * The items of a stream of a run, as server-sent events, from a position on until the run has ended.
   *
   * Needs the scope `viewer`.
   */
  followStream(runId: string, name: string, query?: RunsFollowStreamQuery, options?: RequestOptions): AsyncGenerator<Message<"stream", StreamItem> | Message<"end", StreamEnd>> {
    return this.#to.follow("GET", `/api/v1/runs/${encodeURIComponent(runId)}/streams/${encodeURIComponent(name)}`, { query, options });
  }

  /**
   * Start a new run with the history of another one up to some point, edited; that one stays as it is.
   *
   * Sent again with the same `id`, or the same header `Idempotency-Key`, it is the same run.
   *
   * Needs the scope `operator`.
   */
  fork(runId: string, body?: ForkRun, options?: RequestOptions): Promise<Started> {
    return this.#to.json("POST", `/api/v1/runs/${encodeURIComponent(runId)}/fork`, { body, options });
  }

  /**
   * The steps of a run's flow, or the states of its machine, with where the run is in them.
   *
   * The graph of a function is empty. So is that of a flow whose document is not in the library, and that of a machine
   * which no worker has described.
   *
   * Needs the scope `viewer`.
   */
  graph(runId: string, options?: RequestOptions): Promise<GraphView> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/graph`, { options });
  }

  /**
   * The journal of the tree that a run belongs to, event by event, without what is redacted.
   *
   * Needs the scope `viewer`.
   */
  history(runId: string, query?: RunsHistoryQuery, options?: RequestOptions): Promise<HistoryView> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/history`, { query, options });
  }

  /**
   * One run.
   *
   * Needs the scope `viewer`.
   */
  info(runId: string, options?: RequestOptions): Promise<Run> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}`, { options });
  }

  /**
   * A page of the runs that fit, newest first.
   *
   * Needs the scope `viewer`.
   */
  list(query?: RunsListQuery, options?: RequestOptions): Promise<RunsPage> {
    return this.#to.json("GET", `/api/v1/runs`, { query, options });
  }

  /**
   * Runs that do not move and why, newest first.
   *
   * They are parked, left behind by a worker that is gone, damaged, or due while no live worker has their definition.
   *
   * Needs the scope `viewer`.
   */
  listStuck(query?: RunsListStuckQuery, options?: RequestOptions): Promise<IncompleteList> {
    return this.#to.json("GET", `/api/v1/runs/stuck`, { query, options });
  }

  /**
   * Let a run, with its tree, begin nothing more; steps that run end, and their results are kept.
   *
   * Needs the scope `operator`.
   */
  pause(runId: string, body?: Attributed, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/runs/${encodeURIComponent(runId)}/pause`, { body, options });
  }

  /**
   * One payload of an event, as JSON: a history says `{"[large]": bytes}` in the place of large ones.
   *
   * Needs the scope `viewer`.
   */
  payload(runId: string, seq: string, field: string, options?: RequestOptions): Promise<unknown> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/history/${encodeURIComponent(seq)}/${encodeURIComponent(field)}`, { options });
  }

  /**
   * The object that a run last showed with `outlive.publish`.
   *
   * Needs the scope `viewer`.
   */
  published(runId: string, options?: RequestOptions): Promise<PublishedView> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/published`, { options });
  }

  /**
   * How a run ended; with `wait` seconds, when it does. A run that has not ended, or is parked, is answered with 202.
   *
   * The result is plain JSON, without what is redacted.
   *
   * Needs the scope `viewer`.
   */
  result(runId: string, query?: RunsResultQuery, options?: RequestOptions): Promise<ResultView | NotEnded> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/result`, { query, options });
  }

  /**
   * Let a run go on that is parked or paused.
   *
   * Needs the scope `operator`.
   */
  resume(runId: string, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/runs/${encodeURIComponent(runId)}/resume`, { options });
  }

  /**
   * Let a run that has failed, timed out or was cancelled go on at what failed.
   *
   * Needs the scope `operator`.
   */
  retry(runId: string, body?: Reasoned, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/runs/${encodeURIComponent(runId)}/retry`, { body, options });
  }

  /**
   * Send a signal to a run; it is durable when this answers, and buffered until the run asks for it.
   *
   * With `start`, the run is created in the same transaction if there is none.
   *
   * Needs the scope `operator`.
   */
  signal(runId: string, name: string, body?: SendSignal, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/runs/${encodeURIComponent(runId)}/signals/${encodeURIComponent(name)}`, { body, options });
  }

  /**
   * Send many signals in one transaction, to one run or to many.
   *
   * All of them are durable when this answers, and nothing is sent if one of them cannot work; `detail` says which. A
   * signal whose run is not there, has ended or is full has a problem in its place. Sent again with the same keys, or
   * with the same header `Idempotency-Key`, they are the same signals.
   *
   * Needs the scope `operator`.
   */
  signalMany(body: SendSignals, options?: RequestOptions): Promise<SentSignals> {
    return this.#to.json("POST", `/api/v1/bulk/signal`, { body, options });
  }

  /**
   * Let a parked run go on without calling a step that is in flight.
   *
   * Needs the scope `operator`.
   */
  skipStep(runId: string, body?: SkipStep, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/runs/${encodeURIComponent(runId)}/skip`, { body, options });
  }

  /**
   * Start a run by the name of its workflow.
   *
   * It is durable when this answers; no worker has to be up. Sent again with the same `id`, or with the same header
   * `Idempotency-Key`, it is the same run and the same answer.
   *
   * Needs the scope `operator`.
   */
  start(body: StartRun, options?: RequestOptions): Promise<Started> {
    return this.#to.json("POST", `/api/v1/runs`, { body, options });
  }

  /**
   * Start many runs in one transaction, each by the name of its workflow.
   *
   * All of them are durable when this answers, and nothing is started if one of them cannot work; `detail` says which.
   * An id that is taken is answered as `on_conflict` of its start says, with a problem in its place if that run was not
   * started. Sent again with the same ids, or with the same header `Idempotency-Key`, they are the same runs.
   *
   * Needs the scope `operator`.
   */
  startMany(body: StartRuns, options?: RequestOptions): Promise<StartedRuns> {
    return this.#to.json("POST", `/api/v1/bulk/start`, { body, options });
  }

  /**
   * The steps of a run that run now, the oldest first; for a root, the steps of its tree. Tasks of remote steps too.
   *
   * A worker in another process than this server tells of steps that have lasted for some seconds, and of arguments that
   * are short.
   *
   * Needs the scope `viewer`.
   */
  steps(runId: string, query?: RunsStepsQuery, options?: RequestOptions): Promise<StepsView> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/steps`, { query, options });
  }

  /**
   * Which streams a run has, by what it has emitted so far.
   *
   * Needs the scope `viewer`.
   */
  streams(runId: string, options?: RequestOptions): Promise<StreamsList> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/streams`, { options });
  }

  /**
   * The runs of the tree that a run belongs to, the root first.
   *
   * Needs the scope `viewer`.
   */
  tree(runId: string, options?: RequestOptions): Promise<RunsList> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/tree`, { options });
  }

  /**
   * The wait of a run, or how it ended, in one sentence.
   *
   * Needs the scope `viewer`.
   */
  why(runId: string, options?: RequestOptions): Promise<WhyView> {
    return this.#to.json("GET", `/api/v1/runs/${encodeURIComponent(runId)}/why`, { options });
  }
}

export class SchedulesOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Start the runs of the ticks of a past range that have none.
   *
   * Sent again it starts nothing twice, and says how many have none by then.
   *
   * Needs the scope `operator`.
   */
  backfill(name: string, body: Backfill, options?: RequestOptions): Promise<BackfillView> {
    return this.#to.json("POST", `/api/v1/schedules/${encodeURIComponent(name)}/backfill`, { body, options });
  }

  /**
   * Delete a schedule; its runs stay.
   *
   * Needs the scope `admin`.
   */
  delete(name: string, options?: RequestOptions): Promise<Done> {
    return this.#to.json("DELETE", `/api/v1/schedules/${encodeURIComponent(name)}`, { options });
  }

  /**
   * A schedule: when it fires next, its last outcomes, and what stands in its way.
   *
   * Needs the scope `viewer`.
   */
  get(name: string, options?: RequestOptions): Promise<Schedule> {
    return this.#to.json("GET", `/api/v1/schedules/${encodeURIComponent(name)}`, { options });
  }

  /**
   * Schedules by name.
   *
   * Needs the scope `viewer`.
   */
  list(query?: SchedulesListQuery, options?: RequestOptions): Promise<SchedulesList> {
    return this.#to.json("GET", `/api/v1/schedules`, { query, options });
  }

  /**
   * Let a schedule start nothing more.
   *
   * Needs the scope `operator`.
   */
  pause(name: string, body?: Attributed, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/schedules/${encodeURIComponent(name)}/pause`, { body, options });
  }

  /**
   * Let a schedule go on that was paused or has tripped.
   *
   * Needs the scope `operator`.
   */
  resume(name: string, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/schedules/${encodeURIComponent(name)}/resume`, { options });
  }

  /**
   * Create a schedule, or give one another definition; one that is there keeps its state.
   *
   * Needs the scope `admin`.
   */
  set(name: string, body: SetSchedule, options?: RequestOptions): Promise<Schedule> {
    return this.#to.json("PUT", `/api/v1/schedules/${encodeURIComponent(name)}`, { body, options });
  }

  /**
   * Start a run of a schedule now, also while it is paused.
   *
   * Sent again with the same header `Idempotency-Key`, it is the same run.
   *
   * Needs the scope `operator`.
   */
  trigger(name: string, body?: TriggerSchedule, options?: RequestOptions): Promise<Started> {
    return this.#to.json("POST", `/api/v1/schedules/${encodeURIComponent(name)}/trigger`, { body, options });
  }
}

export class StoreOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Let everything in this store begin nothing more. New runs may be started, and wait.
   *
   * Needs the scope `admin`.
   */
  pause(body?: Attributed, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/store/pause`, { body, options });
  }

  /**
   * Let go on what was paused as a whole; a run, a workflow or a queue that was paused by itself stays paused.
   *
   * Needs the scope `admin`.
   */
  resume(options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/store/resume`, { options });
  }
}

export class TasksOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Take the next task of a queue, with a lease; wait for one if there is none.
   *
   * If the answer is lost, or the worker is, the task is for others when the lease has run out.
   *
   * Needs the scope `worker`.
   */
  claim(body: ClaimTask, options?: RequestOptions): Promise<Claimed> {
    return this.#to.json("POST", `/api/v1/tasks/claim`, { body, options });
  }

  /**
   * End a task with its output; it is durable when this answers, and the same again is fine.
   *
   * The first end counts: a later one, and one without the lease, is refused with 409.
   *
   * Needs the scope `worker`.
   */
  complete(taskId: string, body: CompleteTask, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/tasks/${encodeURIComponent(taskId)}/complete`, { body, options });
  }

  /**
   * End a task with an error; this attempt of the step has failed. As `complete_task`.
   *
   * A task that was cancelled ends as cancelled.
   *
   * Needs the scope `worker`.
   */
  fail(taskId: string, body: FailTask, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/tasks/${encodeURIComponent(taskId)}/fail`, { body, options });
  }

  /**
   * Renew the lease of a task, with progress or without; the answer says whether the task was cancelled.
   *
   * Needs the scope `worker`.
   */
  heartbeat(taskId: string, body: Heartbeat, options?: RequestOptions): Promise<TaskNotice> {
    return this.#to.json("POST", `/api/v1/tasks/${encodeURIComponent(taskId)}/heartbeat`, { body, options });
  }
}

export class WorkersOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * Sessions of workers that are live or still own runs. Others take over what those own that are gone.
   *
   * Needs the scope `viewer`.
   */
  list(options?: RequestOptions): Promise<WorkersList> {
    return this.#to.json("GET", `/api/v1/workers`, { options });
  }

  /**
   * The steps that live workers run, by name: what each takes and gives, as workers have said.
   *
   * Steps of Python and remote steps; a remote step has the name of its queue in front, as in a document.
   *
   * Needs the scope `viewer`.
   */
  steps(options?: RequestOptions): Promise<StepsList> {
    return this.#to.json("GET", `/api/v1/workers/steps`, { options });
  }
}

export class WorkflowsOperations {
  #to: Transport;

  constructor(to: Transport) {
    this.#to = to;
  }

  /**
   * The versions of one workflow.
   *
   * Needs the scope `viewer`.
   */
  get(name: string, options?: RequestOptions): Promise<WorkflowsList> {
    return this.#to.json("GET", `/api/v1/workflows/${encodeURIComponent(name)}`, { options });
  }

  /**
   * The states of a machine as boxes and arrows, as its workers have described them. That of a function is empty.
   *
   * Needs the scope `viewer`.
   */
  graph(name: string, query?: WorkflowsGraphQuery, options?: RequestOptions): Promise<GraphView> {
    return this.#to.json("GET", `/api/v1/workflows/${encodeURIComponent(name)}/graph`, { query, options });
  }

  /**
   * Every workflow that workers have described, in every version, with the schemas of its arguments and result.
   *
   * Needs the scope `viewer`.
   */
  list(options?: RequestOptions): Promise<WorkflowsList> {
    return this.#to.json("GET", `/api/v1/workflows`, { options });
  }

  /**
   * Let the runs of a workflow begin nothing more. New ones may be started, and wait.
   *
   * Needs the scope `operator`.
   */
  pause(name: string, body?: Attributed, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/workflows/${encodeURIComponent(name)}/pause`, { body, options });
  }

  /**
   * Let the runs of a workflow go on.
   *
   * Needs the scope `operator`.
   */
  resume(name: string, options?: RequestOptions): Promise<Done> {
    return this.#to.json("POST", `/api/v1/workflows/${encodeURIComponent(name)}/resume`, { options });
  }
}

/**
 * Durable workflows over HTTP.
 *
 * Every answer that is an error is a problem of RFC 9457 with the name of the error and what to do next. A request
 * that
 * changes something may be sent again with the same `Idempotency-Key`: nothing happens twice.
 */
export class Outlive {
  readonly api: ApiOperations;
  readonly approvals: ApprovalsOperations;
  readonly asks: AsksOperations;
  readonly audit: AuditOperations;
  readonly batches: BatchesOperations;
  readonly bulk: BulkOperations;
  readonly deadLetters: DeadLettersOperations;
  readonly deploys: DeploysOperations;
  readonly events: EventsOperations;
  readonly flows: FlowsOperations;
  readonly health: HealthOperations;
  readonly inbox: InboxOperations;
  readonly keys: KeysOperations;
  readonly me: MeOperations;
  readonly overview: OverviewOperations;
  readonly promises: PromisesOperations;
  readonly queues: QueuesOperations;
  readonly runs: RunsOperations;
  readonly schedules: SchedulesOperations;
  readonly store: StoreOperations;
  readonly tasks: TasksOperations;
  readonly workers: WorkersOperations;
  readonly workflows: WorkflowsOperations;

  constructor(url: string, options: Options = {}) {
    const to = new Transport(url, options);
    this.api = new ApiOperations(to);
    this.approvals = new ApprovalsOperations(to);
    this.asks = new AsksOperations(to);
    this.audit = new AuditOperations(to);
    this.batches = new BatchesOperations(to);
    this.bulk = new BulkOperations(to);
    this.deadLetters = new DeadLettersOperations(to);
    this.deploys = new DeploysOperations(to);
    this.events = new EventsOperations(to);
    this.flows = new FlowsOperations(to);
    this.health = new HealthOperations(to);
    this.inbox = new InboxOperations(to);
    this.keys = new KeysOperations(to);
    this.me = new MeOperations(to);
    this.overview = new OverviewOperations(to);
    this.promises = new PromisesOperations(to);
    this.queues = new QueuesOperations(to);
    this.runs = new RunsOperations(to);
    this.schedules = new SchedulesOperations(to);
    this.store = new StoreOperations(to);
    this.tasks = new TasksOperations(to);
    this.workers = new WorkersOperations(to);
    this.workflows = new WorkflowsOperations(to);
  }
}
