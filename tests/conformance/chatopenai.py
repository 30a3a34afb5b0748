"""LangChain's ChatOpenAI: takes calls of chat completions and answers in their shape."""
import json

import langchain_openai

import lines


def to_call(index, call):
    return {"index": index, "id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": json.dumps(call["args"])}}


def to_usage(message):
    if not (usage := message.usage_metadata):
        return None
    return {"prompt_tokens": usage["input_tokens"], "completion_tokens": usage["output_tokens"], "total_tokens": usage["total_tokens"]}


def to_completion(message):
    calls = [to_call(i, call) for i, call in enumerate(message.tool_calls)]
    return {
        "id": message.response_metadata.get("id") or message.id,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": message.text, "tool_calls": calls},
                     "finish_reason": message.response_metadata.get("finish_reason")}],
        "usage": to_usage(message),
    }


def to_chunk(message):
    if message.usage_metadata and not message.text:
        return {"choices": [], "usage": to_usage(message)}
    return {"choices": [{"index": 0, "delta": {"content": message.text}, "finish_reason": message.response_metadata.get("finish_reason")}]}


async def run(call):
    params = dict(call["params"])
    messages, tools, schema = params.pop("messages"), params.pop("tools", None), params.pop("schema", None)
    metadata = params.pop("metadata", None)
    params.pop("stream", None), params.pop("stream_options", None)
    model = langchain_openai.ChatOpenAI(
        base_url=call["url"], api_key=call["key"], default_headers=call.get("headers"), stream_usage=True,
        extra_body={"metadata": metadata} if metadata else None, **params)
    if schema:
        return await model.with_structured_output(schema, method="json_schema").ainvoke(messages)
    if tools:
        model = model.bind_tools(tools)
    if not call["method"].endswith(".stream"):
        return to_completion(await model.ainvoke(messages))
    whole = None

    async def chunks():
        nonlocal whole
        async for chunk in model.astream(messages):
            whole = chunk if whole is None else whole + chunk
            yield chunk

    if not await lines.follow(call, chunks(), to_chunk):
        return None
    return to_completion(whole)


lines.serve(run)
