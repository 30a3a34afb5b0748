"""The PyPI package openai: makes the calls that the Go test writes."""
import functools

import lines


def to_event(event):
    """Returns a chunk or an event as it came over the wire; the helper for chats adds its own."""
    if hasattr(event, "chunk"):
        event = event.chunk
    elif hasattr(event, "snapshot") and not hasattr(event, "sequence_number") or event_type(event) in ("content.done", "tool_calls.function.arguments.done"):
        return None
    return event.to_dict(mode="json")


def event_type(event):
    return getattr(event, "type", "")


async def run(call):
    async with lines.new_client(call) as client:
        *path, name = call["method"].split(".")
        resource = functools.reduce(getattr, path, client)
        params = call.get("params") or {}
        result = getattr(resource, name)(*call.get("args") or [], **params)
        if name == "stream":  # the helper, which puts the answer together
            async with result as stream:
                if not await lines.follow(call, stream, to_event):
                    return None
                final = await (stream.get_final_completion if path[0] == "chat" else stream.get_final_response)()
                return final.to_dict(mode="json")
        if params.get("stream"):
            async with await result as stream:
                await lines.follow(call, stream, to_event)
            return None
        if call.get("all"):
            return [item.to_dict(mode="json") async for item in result]
        result = await result
        return result.to_dict(mode="json") if result is not None else None


lines.serve(run)
