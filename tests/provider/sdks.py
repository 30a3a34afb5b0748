"""The SDKs of Anthropic and OpenAI, with strict validation of all that comes, talk to the strict providers.

Usage: sdks.py <base URL of Anthropic> <base URL of OpenAI>. A type that does not fit, or a wrong answer, ends it
with an error.
"""
import sys

import anthropic
import openai
from anthropic.types import beta
from openai.types import responses

MODEL = "claude-fable-5-1"
BINDING, COMPACT = "thinking-binding-controls-2026-08-01", "compact-2026-09-04"
INLINE_TOOLS = "inline-tools-2026-09-15"
CALCULATOR = {"name": "calculator", "description": "Calculates.", "input_schema": {"type": "object", "properties": {"expression": {"type": "string"}}}}


def want(what, got, expected):
    if got != expected:
        raise AssertionError(f"{what}: got {got!r}, want {expected!r}")


def want_type(what, got, expected):
    if type(got) is not expected:
        raise AssertionError(f"{what}: got {got!r}, want a {expected.__name__}")


def final(client, **request):
    """The message that a stream comes to."""
    with client.beta.messages.stream(**request) as stream:
        return stream.get_final_message()


class Conversation:
    """A conversation with Claude in which each answer goes back as the SDK returned it."""

    def __init__(self, client, **params):
        self.client, self.messages = client, []
        self.params = {"model": MODEL, "max_tokens": 4096, "system": "You help.", "tools": [CALCULATOR], "betas": [BINDING, COMPACT]} | params

    def ask(self, content, **more):
        self.messages.append({"role": "user", "content": content})
        return self.add(final(self.client, messages=self.messages, **self.params | more))

    def add(self, answer):
        self.messages.append({"role": "assistant", "content": answer.content})
        return answer


def thinking(client):
    """A tool call, then an answer: all thoughts come back as they were."""
    c = Conversation(client, thinking={"type": "adaptive", "display": "summarized", "block_binding": {"prefix_mismatch_behavior": "error"}})
    answer = c.ask("use a tool")
    want("stop reason", answer.stop_reason, "tool_use")
    want_type("thought", answer.content[0], beta.BetaThinkingBlock)
    want("thought", answer.content[0].thinking, "There are 1 messages.")
    want_type("call", answer.content[1], beta.BetaToolUseBlock)
    want("input", answer.content[1].input, {"expression": "6 * 7"})
    want_type("iteration", answer.usage.iterations[0], beta.BetaMessageIterationUsage)
    want("iteration", answer.usage.iterations[0].input_tokens, answer.usage.input_tokens)
    answer = c.ask([{"type": "tool_result", "tool_use_id": answer.content[1].id, "content": "42"}])
    want("streamed text", answer.content[1].text, "answer to: use a tool")
    want("transformations of the stream", answer.input_transformations, [])
    answer = c.ask("thanks")
    want("text", answer.content[-1].text, "answer to: thanks")
    want("transformations", answer.input_transformations, [])
    return c


def changed_prefix(client):
    """A changed message: an error that the SDK knows, then with drop_block a report."""
    c = thinking(client)
    c.messages[0] = {"role": "user", "content": "use the tool"}
    try:
        c.ask("and now?")
        raise AssertionError("a changed prefix was taken")
    except anthropic.BadRequestError as e:
        want("error", e.body["error"]["type"], "invalid_request_error")
        want("words", "`thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"." in e.message, True)
    c.messages.pop()
    drop = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    answer = c.ask("and now?", thinking=drop)
    for entry in answer.input_transformations:
        want_type("entry", entry, beta.BetaThinkingDroppedInputTransformation)
    want("dropped", [(x.path, x.reason) for x in answer.input_transformations], [(f"messages.{i}.content.0", "prefix_binding_mismatch") for i in (1, 3, 5)])


def compaction(client):
    """A compaction in the middle: what follows it keeps its thoughts."""
    c = thinking(client)
    sent = len(c.messages)
    summary = final(client, messages=list(c.messages), compaction={"type": "summarize"}, **c.params)
    want("stop reason", summary.stop_reason, "compaction")
    want("blocks", len(summary.content), 1)
    want_type("block", summary.content[0], beta.BetaCompactionBlock)
    want("signed", bool(summary.content[0].signature and summary.content[0].content), True)
    want("top-level usage", (summary.usage.input_tokens, summary.usage.output_tokens), (0, 0))
    want_type("iteration", summary.usage.iterations[0], beta.BetaCompactionIterationUsage)
    want("billed", summary.usage.iterations[0].input_tokens > 0, True)
    c.ask("meanwhile")
    c.messages = [{"role": "assistant", "content": summary.content}] + c.messages[sent:]
    answer = c.ask("go on")
    want("transformations after the compaction", answer.input_transformations, [])


def tool_changes(client):
    """A tool is added and removed in the conversation: the thoughts stay valid."""
    scales = CALCULATOR | {"name": "scales"}
    added = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": scales}}
    removed = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "scales"}}
    c = Conversation(client, betas=[BINDING, INLINE_TOOLS], thinking={"type": "adaptive"})
    for change, called in ((added, "scales"), (removed, "calculator")):
        c.messages.append({"role": "user", "content": "use the tool scales"})
        c.messages.append({"role": "system", "content": [change]})
        answer = c.add(final(client, messages=c.messages, **c.params))
        want("called", answer.content[-1].name, called)
        want("transformations", answer.input_transformations, [])
        c.ask([{"type": "tool_result", "tool_use_id": answer.content[-1].id, "content": "42"}])


def reasoning(client):
    """The Responses API: reasoning goes back encrypted, a change is reported."""
    tool = {"type": "function", "name": "calculator", "parameters": CALCULATOR["input_schema"], "strict": False}
    params = {"model": "gpt-6.2-sol", "instructions": "You help.", "tools": [tool], "store": False, "include": ["reasoning.encrypted_content"]}
    items = [{"role": "user", "content": "use a tool"}]

    def create(items):
        events = list(client.responses.create(input=items, stream=True, **params))
        want_type("last event", events[-1], responses.ResponseCompletedEvent)
        return events[-1].response

    def send():
        answer = create(items)
        items.extend(answer.output)
        return answer

    answer = send()
    want_type("reasoning", answer.output[0], responses.ResponseReasoningItem)
    want("encrypted", bool(answer.output[0].encrypted_content), True)
    want_type("call", answer.output[1], responses.ResponseFunctionToolCall)
    items.append({"type": "function_call_output", "call_id": answer.output[1].call_id, "output": "42"})
    answer = send()
    want("text", answer.output_text, "answer to: 42")
    want("transformations", answer.input_transformations, [])
    items.append({"role": "user", "content": "thanks"})
    send()

    items[0] = {"role": "user", "content": "use the tool"}
    items.append({"role": "user", "content": "changed"})
    removed = create(items).input_transformations
    want("removed", [(x.action, x.reason) for x in removed], [("removed", "prefix_mismatch")] * 3)
    want("removed items", [x.id for x in removed], [x.id for x in items if getattr(x, "type", "") == "reasoning"])
    items[0] = {"role": "user", "content": "use a tool"}

    added = {"type": "additional_tools", "role": "developer", "tools": [tool | {"name": "scales"}]}
    named = create([*items, added, {"role": "user", "content": "use the tool scales"}])
    want("call of an added tool", named.output[-1].name, "scales")
    want("transformations behind added tools", named.input_transformations, [])


def main(claude, gpt):
    with anthropic.Anthropic(base_url=claude, api_key="none", max_retries=0, _strict_response_validation=True) as client:
        thinking(client)
        changed_prefix(client)
        compaction(client)
        tool_changes(client)
    with openai.OpenAI(base_url=gpt, api_key="none", max_retries=0, _strict_response_validation=True) as client:
        reasoning(client)


main(*sys.argv[1:])
