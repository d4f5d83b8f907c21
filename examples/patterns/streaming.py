"""A reply that is read while it is made: elsewhere, over a connection that is lost, with an attempt that fails (after
Temporal's sample `workflow_streams`)."""

import asyncio
from collections.abc import AsyncIterator

import outlive

WORDS = ["Runs ", "outlive ", "the ", "process ", "that ", "began ", "them."]


async def ask_model(attempt: int) -> AsyncIterator[str]:
    """Stands for a model that streams its reply, and hangs up in the middle of the first one."""
    for number, word in enumerate(WORDS):
        if attempt == 1 and number == 3:
            raise ConnectionError("the model hung up")
        await asyncio.sleep(0)
        yield word


@outlive.step(name="patterns.write_reply", retry=outlive.Retry(attempts=3, first=0.01, on=(ConnectionError,)))
async def write_reply(prompt: str) -> str:
    words = []
    async for word in ask_model(outlive.current_step().attempt):
        await outlive.emit("tokens", word)
        words.append(word)
    return "".join(words)


@outlive.workflow(name="patterns.chat")
async def chat(prompt: str) -> str:
    await outlive.emit("status", "thinking")
    text = await write_reply(prompt)
    await outlive.emit("status", "done")
    return text


class Page:
    """What a browser shows: the words of the attempt that counts, and where it is in the stream."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.position = 0
        self._source: tuple[int, int] | None = None

    async def read(self, run: outlive.types.RunHandle[str], *, lost_at: int | None = None) -> None:
        """Read on behind the last word; the connection may be lost at some position."""
        async for item in run.stream("tokens", str, after=self.position, positions=True):
            if self._source not in (None, (item.epoch, item.attempt)):
                self.words.clear()  # The step is called again: what the attempt before has said is taken back.
            self._source, self.position = (item.epoch, item.attempt), item.position
            self.words.append(item.value)
            if item.position == lost_at:
                return


async def main() -> None:
    async with outlive.Engine("sqlite:chat.db") as engine, outlive.Engine("sqlite:chat.db", worker=False) as elsewhere:
        run = await engine.start(chat, "What do runs do?")
        page = Page()
        await page.read(elsewhere.get(run.id), lost_at=5)
        await page.read(elsewhere.get(run.id))
        print("".join(page.words), page.position)


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# Runs outlive the process that began them. 10
