"""An agent of Pydantic AI that cleans up backups, asks a person before it deletes one, and survives kill -9.

    python examples/agents/pydantic_ai_ops.py                                   # in one terminal: it waits for a person
    outlive approve clean-up-1 delete_backup --by ann --store sqlite:ops.db     # in another one

Kill the first with -9 wherever you like and start it again. Answers of the model and results of tools that it had are
in the journal, and are not asked for again.
"""

import asyncio

import pydantic_ai.models.openai  # noqa: F401  # now, as the import takes a second, and a worker must not stand still
from backups import delete, find, main
from pydantic_ai import Agent

import outlive
from outlive.integrations.pydantic_ai import Durability, asks_people

agent = Agent(
    "openai-chat:gpt-5",
    name="ops",
    instructions="You look after backups.",
    capabilities=[
        Durability(stream="tokens", model={"timeout": 60, "retry": outlive.Retry(attempts=3)}),
        asks_people(assignees=["ops"]),
    ],
)


@agent.tool_plain
async def list_backups() -> list[str]:
    """All backups."""
    return await find()


@agent.tool_plain(requires_approval=True)
async def delete_backup(name: str) -> str:
    """Delete a backup for good."""
    return await delete(name)


@outlive.workflow(name="pydantic-ai-ops")
async def clean_up(request: str) -> str:
    answer = await agent.run(request)
    return answer.output


if __name__ == "__main__":
    asyncio.run(main(clean_up))
