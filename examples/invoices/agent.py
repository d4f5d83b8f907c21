"""An agent that writes letters to customers, and asks a person before it sends one.

It is a program of its own (`outlive worker invoices.agent`), because the framework takes a while and some memory to be
imported. The model is a script in this process, so that the example needs no network.
"""

from collections.abc import AsyncIterator

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

import outlive
from invoices import settings
from invoices.services import ask
from outlive.integrations.pydantic_ai import Durability, asks_people

letters = outlive.Queue("letters", concurrency=4, hold="running")


async def script(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """Stands for a model: it looks the invoice up, sends a letter, and says how that went."""
    number = str(messages[0].parts[-1].content).split()[-1]
    results = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if not results:
        yield {0: DeltaToolCall("look_up", f'{{"number": "{number}"}}')}
    elif len(results) == 1:
        yield {0: DeltaToolCall("send_letter", f'{{"number": "{number}", "text": "Thank you: {results[0].content}."}}')}
    else:
        for word in f"{number}: {results[-1].content}".split():
            yield f"{word} "


writer = Agent(
    FunctionModel(stream_function=script),
    name="writer",
    instructions="You write friendly letters.",
    capabilities=[
        Durability(stream="tokens", model={"timeout": 20, "retry": outlive.Retry(attempts=None, first=0.2, cap=3)}),
        asks_people(assignees=["finance"]),
    ],
)
AGAIN = {"outlive": {"timeout": 10, "retry": outlive.Retry(attempts=None, first=0.2, cap=3, on=(OSError,))}}


@writer.tool_plain(metadata=AGAIN)
def look_up(number: str) -> str:
    """What the bank knows of an invoice."""
    return str(ask(f"{settings.BANK}/look", {"number": number})["state"])


@writer.tool_plain(requires_approval=True, metadata=AGAIN)
def send_letter(number: str, text: str) -> str:
    """Send a letter to a customer."""
    ask(f"{settings.MAILER}/mails", {"to": "customer", "kind": "letter", "number": number, "text": text})
    return "sent"


@outlive.workflow(queue=letters)
async def write_letter(number: str) -> str:
    """Let the agent write about one invoice."""
    output: str = (await writer.run(f"Write a letter about invoice {number}")).output
    return output
