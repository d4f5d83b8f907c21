"""Messages to a run: a signal that only tells, an ask that wants an answer, and what the run shows of itself.

Temporal calls these signal, update and query. What a run publishes is read without disturbing it.
"""

import asyncio

import outlive

GREETINGS = {"English": "Hello", "Swedish": "Hej", "Arabic": "مرحبا"}


def known(language: str) -> None:
    if language not in GREETINGS:
        raise ValueError(f"no greeting is known in {language}")


@outlive.workflow(name="patterns.greeting")
async def greeting() -> str:
    language = "English"

    async def serve() -> None:
        nonlocal language
        async for ask in outlive.asks("set_language", str, validate=known):
            language, before = ask.body, language
            outlive.publish(language=language)
            ask.reply(before)

    outlive.publish(language=language)
    server = asyncio.create_task(serve())
    approver = await outlive.wait_for_signal("approve", str)
    server.cancel()
    return f"{GREETINGS[language]}, {approver}!"


async def main() -> None:
    async with outlive.Engine("memory:") as engine:
        run = await engine.start(greeting)
        print("it was", await run.ask("set_language", "Swedish"), "and is", await run.published())
        try:
            await run.ask("set_language", "Klingon")
        except outlive.errors.AskFailedError as refused:
            print(refused.__cause__)  # A validator's refusal leaves no trace in the journal.
        await run.signal("approve", "Ann")
        print(await run.result())


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# it was English and is {'language': 'Swedish'}
# no greeting is known in Klingon
# Hej, Ann!
