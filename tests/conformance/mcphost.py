"""The PyPI package mcp, with either revision of the protocol."""
import asyncio

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

import lines

METHODS = {"listTools": "list_tools", "listResources": "list_resources", "listResourceTemplates": "list_resource_templates", "readResource": "read_resource"}
clients = {}  # futures of connected clients
holders = []  # the tasks that keep them connected


async def hold(call, connected):
    http = httpx2.AsyncClient(headers={"Authorization": "Bearer " + call["key"]}, timeout=120)
    mode = "legacy" if call["revision"] < "2026" else "auto"
    try:
        async with Client(streamable_http_client(call["url"], http_client=http), mode=mode, raise_exceptions=True) as client:
            connected.set_result(client)
            await asyncio.Event().wait()
    except BaseException as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if not connected.done():
            connected.set_exception(error)


async def connect(call):
    name = call["url"], call["key"], call["revision"]
    if name not in clients:
        clients[name] = asyncio.get_running_loop().create_future()
        holders.append(asyncio.create_task(hold(call, clients[name])))
    return await clients[name]


async def run(call):
    params = call.get("params") or {}
    client = await connect(call)
    if call["method"] == "connect":
        return {"server": client.server_info.model_dump(mode="json", by_alias=True), "instructions": client.instructions, "revision": client.protocol_version}
    if call["method"] != "callTool":
        result = await getattr(client, METHODS[call["method"]])(**params)
        return result.model_dump(mode="json", by_alias=True)

    async def progress(done, total, message):
        lines.tell({"id": call["id"], "event": {"progress": done, "message": message}})

    timeout = params.get("timeout")
    result = await client.call_tool(
        params["name"], params.get("arguments"), read_timeout_seconds=timeout / 1000 if timeout else None,
        progress_callback=progress if params.get("progress") else None)
    return result.model_dump(mode="json", by_alias=True)


lines.serve(run)
