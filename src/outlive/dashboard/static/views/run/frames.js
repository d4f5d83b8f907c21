// @ts-check
// Errors as people read them: the frames of their own code first. Pure.

const FRAME = /File "(.+)", line (\d+), in (.+)(?:\n {4,}(.+))?/g;
const FOREIGN = /(^<|site-packages|dist-packages|\/lib\/python3|\/outlive\/(_|engine|client))/;
const CAUSES_MAX = 8;

/** The frames of a traceback, the innermost first: {file, line, name, code, isOwn}. */
export function framesOf(traceback) {
  return [...(traceback ?? '').matchAll(FRAME)]
    .map(([, file, line, name, code]) => ({
      file,
      line: Number(line),
      name,
      code: code ?? '',
      isOwn: !FOREIGN.test(file),
    }))
    .reverse();
}

/** A failure and what caused it: [{type, message, notes, own, others}]. */
export function causesOf(failure) {
  const found = [];
  for (let each = failure; each && found.length < CAUSES_MAX; each = each.cause) {
    const frames = framesOf(each.traceback);
    found.push({
      type: each.type,
      message: each.message ?? '',
      notes: each.notes ?? [],
      own: frames.filter((frame) => frame.isOwn),
      others: frames.filter((frame) => !frame.isOwn),
    });
  }
  return found;
}
