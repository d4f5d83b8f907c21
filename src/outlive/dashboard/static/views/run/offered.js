// Which actions are offered for a run now, and to this user. Their dialogs are in actions.js, which is loaded when one is opened.
import { can } from '../../session.js';

const isOpen = (run) => !run.finished_at;
const RETRIABLE = ['failed', 'timed_out', 'cancelled'];

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
    ['fork', run.number === 0],
    ['cancel', isOpen(run)],
    ['delete_run', !isOpen(run) && run.number === 0],
  ].filter(([name, fits]) => fits && can(name)).map(([name]) => name);
}

export const LABELS = { approve: 'Approve…', reject: 'Reject…', signal: 'Signal…', ask: 'Ask…', retry: 'Retry…', resume: 'Resume', skip_step: 'Skip a step…', pause: 'Pause…', fork: 'Fork…', cancel: 'Cancel…', delete_run: 'Delete…' };
