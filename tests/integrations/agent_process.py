"""One life of an example of examples/agents, in the folder that it is started in: `python -m ... pydantic_ai_ops`."""

import asyncio
import importlib
import sys
from pathlib import Path

AGENTS = Path(__file__).parents[2] / "examples" / "agents"

if __name__ == "__main__":
    sys.path.insert(0, str(AGENTS))
    example = importlib.import_module(sys.argv[1])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    asyncio.run(importlib.import_module("backups").main(example.clean_up))
