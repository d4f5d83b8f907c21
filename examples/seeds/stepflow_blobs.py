"""Stepflow: the blob store, which names data by its content.

The page's verbs: put and get a blob, store and get a flow. A flow puts and gets blobs with `use: blob`; the id is
the SHA-256 of the bytes, so the same content is one blob. A flow that is published is a document with such an id
too: runs are pinned to it, and the same document again makes no new revision.
"""

import asyncio
import hashlib
from pathlib import Path

import outlive
from outlive import flow

Path("outlive.toml").write_text('store = "memory:"\n[flows.blobs]\nfolder = "blobs"\n', "utf-8")

KEEP = """
name: keep
input: { text: string }
steps:
  put: { use: blob, with: { put: { text: "${{ input.text }}" }, type: data } }
  twice: { use: blob, with: { put: { text: "${{ input.text }}" }, type: data } }
  get: { use: blob, with: { get: "${{ steps.put.id }}" } }
output:
  same: "${{ steps.put.id == steps.twice.id }}"
  content: "${{ steps.get }}"
"""
keep = flow.parse(KEEP)


async def main() -> None:
    async with outlive.Engine.configured("outlive.toml") as engine:
        result = await (await engine.start(keep, {"text": "hello"})).result()
        print("the same content is the same blob:", result["same"], result["content"]["data"])
        print("its id:", result["content"]["id"][:12], "=", hashlib.sha256(b'{"text":"hello"}').hexdigest()[:12])
        first = await engine.flows.apply(KEEP, by="ann")  # store_flow
        again = await engine.flows.apply(KEEP, by="bob")
        print("revision", first.revision, again.revision, "of the same document:", first.hash == again.hash)
        stored = await engine.flows.get("keep")  # get_flow
        print(stored.document.name, list(stored.document.steps))


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# the same content is the same blob: True {'text': 'hello'}
# its id: cbbbdcd27692 = cbbbdcd27692
# revision 1 1 of the same document: True
# keep ['put', 'twice', 'get']
