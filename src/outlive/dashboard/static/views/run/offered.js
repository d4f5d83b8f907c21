// @ts-check
// Which actions are offered for a run now, and to this user. Their dialogs are in actions.js, which is loaded when one
// is opened.
import { can } from '../../session.js';

const isOpen = (run) => !run.finished_at;
const RETRIABLE = ['failed', 'timed_out', 'cancelled'];

/** The operation of the API that each action needs. */
const OPERATIONS = {
  approve: 'approvals.approve',
  reject: 'approvals.reject',
  signal: 'runs.signal',
  ask: 'runs.ask',
  retry: 'runs.retry',
  resume: 'runs.resume',
  resume_workflow: 'workflows.resume',
  skip_step: 'runs.skip_step',
  pause: 'runs.pause',
  change: 'runs.change',
  fork: 'runs.fork',
  cancel: 'runs.cancel',
  delete_run: 'runs.delete',
};

/** Whether this user may take an action. */
export const mayAct = (name) => can(OPERATIONS[name]);

/** The actions that make sense for a run now, by name; those that the user may not take are not among them. */
export function offered(run) {
  const parked = run.status === 'parked';
  return [
    ['approve', run.approvals.length > 0],
    ['signal', isOpen(run)],
    ['ask', isOpen(run)],
    ['retry', RETRIABLE.includes(run.status) && run.number === 0],
    ['resume', parked],
    ['skip_step', parked],
    ['pause', isOpen(run) && !parked && run.number === 0],
    ['change', isOpen(run)],
    ['fork', run.number === 0],
    ['cancel', isOpen(run)],
    ['delete_run', !isOpen(run) && run.number === 0],
  ]
    .filter(([name, fits]) => fits && mayAct(name))
    .map(([name]) => name);
}

export const LABELS = {
  approve: 'Approve…',
  reject: 'Reject…',
  signal: 'Signal…',
  ask: 'Ask…',
  retry: 'Retry…',
  resume: 'Resume',
  skip_step: 'Skip a step…',
  pause: 'Pause…',
  change: 'Change…',
  fork: 'Fork…',
  cancel: 'Cancel…',
  delete_run: 'Delete…',
};
