"""What the scripts share: calls that the Go test writes, a line of JSON each, and the answers."""
import asyncio
import json
import os
import sys

import openai


def tell(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def fault(error):
    """Returns what an error says."""
    said = {name: getattr(error, name, None) or "" for name in ("code", "param", "type")}
    return {"class": type(error).__name__, "message": str(error), "status": getattr(error, "status_code", 0), **said}


async def follow(call, stream, to_event):
    """Writes each event, and returns False if it is one that the test waits for."""
    async for event in stream:
        if (event := to_event(event)) is None:
            continue
        tell({"id": call["id"], "event": event})
        if (until := call.get("until")) and until in json.dumps(event, ensure_ascii=False):
            return False
    return True


def serve(run):
    """Answers the calls of the test until its lines end. run returns the result of a call."""

    async def answer(call):
        try:
            tell({"id": call["id"], "result": await run(call)})
        except Exception as error:  # the test looks at it
            tell({"id": call["id"], "error": fault(error)})

    async def read():
        tasks = set()
        tell({"ready": True})
        while line := await asyncio.to_thread(sys.stdin.readline):
            tasks.add(task := asyncio.create_task(answer(json.loads(line))))
            task.add_done_callback(tasks.discard)

    asyncio.run(read())
    os._exit(0)  # the pool of threads has nothing to wait for


def new_client(call):
    return openai.AsyncOpenAI(base_url=call["url"], api_key=call["key"], default_headers=call.get("headers"))
