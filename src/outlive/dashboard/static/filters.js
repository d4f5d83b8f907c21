// @ts-check
// The filters of a list of runs: `make generate` writes this file from the document of the API.
export const FILTERS = [
  { name: 'workflow', kind: 'text', hint: '' },
  { name: 'parent_id', kind: 'text', hint: 'The run that started them as its children.' },
  { name: 'id_prefix', kind: 'text', hint: '' },
  { name: 'since', kind: 'instant', hint: 'Created at this instant or later.' },
  { name: 'until', kind: 'instant', hint: 'Created before this instant.' },
  { name: 'finished_since', kind: 'instant', hint: 'Ended at this instant or later.' },
  { name: 'finished_until', kind: 'instant', hint: 'Ended before this instant.' },
  {
    name: 'waiting_for',
    kind: 'text',
    hint: 'The name of a signal, an ask or an approval, or the id of a run; @timer for what a timer will wake.',
  },
  { name: 'error', kind: 'text', hint: 'The class of the exception that it failed with.' },
  { name: 'queue', kind: 'text', hint: '' },
  { name: 'roots_only', kind: 'flag', hint: 'No child runs.' },
  {
    name: 'internal',
    kind: 'flag',
    hint: 'Include runs that the engine makes for itself, such as chunks of batches.',
  },
];
