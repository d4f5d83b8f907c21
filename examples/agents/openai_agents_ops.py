"""An agent of the OpenAI Agents SDK that cleans up backups, asks a person before it deletes one, and survives kill -9.

python examples/agents/openai_agents_ops.py                                 # in one terminal: it waits for a person
outlive approve clean-up-1 delete_backup --by ann --store sqlite:ops.db     # in another one
"""

import asyncio
import json

from agents import Agent, OpenAIProvider, function_tool
from backups import delete, find, main

import outlive
from outlive.integrations.agents import People
from outlive.integrations.openai_agents import durable, run


@function_tool
async def list_backups() -> str:
    """All backups."""
    return json.dumps(await find())


@function_tool(needs_approval=True)
async def delete_backup(name: str) -> str:
    """Delete a backup for good."""
    return await delete(name)


agent = durable(
    Agent(
        name="ops",
        model="gpt-5",
        instructions="You look after backups.",
        tools=[list_backups, delete_backup],
    ),
    stream="tokens",
    model={"timeout": 60, "retry": outlive.Retry(attempts=3)},
    provider=OpenAIProvider(use_responses=False),
)


@outlive.workflow(name="openai-agents-ops")
async def clean_up(request: str) -> str:
    answer = await run(agent, request, people=People(assignees=["ops"]))
    return str(answer.final_output)


if __name__ == "__main__":
    asyncio.run(main(clean_up))
