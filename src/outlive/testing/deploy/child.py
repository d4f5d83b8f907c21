"""A process that replays runs for `outlive check-deploy`: lines of JSON in, lines of JSON out.

What the user's code prints goes nowhere: standard output belongs to the answers.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
from typing import BinaryIO

import msgspec

from outlive.engine.interpreter import tune_interpreter
from outlive.errors import OutliveError
from outlive.testing.deploy.replaying import Replayer, engine_in
from outlive.testing.deploy.verdict import Answer, Task, Tree


async def answer_all(asked: BinaryIO, answers: BinaryIO) -> None:
    """Answer line after line, until there are no more."""

    def say(answer: Answer) -> None:
        answers.write(msgspec.json.encode(answer) + b"\n")
        answers.flush()

    task = msgspec.json.decode(asked.readline(), type=Task)
    try:
        replayer = Replayer(engine_in(task.app, task.url), task.url)
        await replayer.__aenter__()
    except OutliveError as error:
        say(Answer(error=str(error)))
        return
    tune_interpreter()
    gc.freeze()  # Objects that the import has left are not looked through again.
    say(Answer())
    decode = msgspec.json.Decoder(list[Tree]).decode
    for line in asked:
        try:
            say(Answer(findings=await replayer.replay(decode(line))))
        except OutliveError as error:  # The runs cannot be read: that says nothing of the code.
            say(Answer(error=str(error)))
    await replayer.__aexit__(None, None, None)


def main() -> None:
    """Keep the channel of the answers for ourselves, then answer."""
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    logging.disable(logging.CRITICAL)
    asyncio.run(answer_all(sys.stdin.buffer, answers))


if __name__ == "__main__":
    main()
