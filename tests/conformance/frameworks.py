"""pydantic-ai and OpenAI's Agents SDK as programs use them: frameworks.py URL KEY. Writes what they return as JSON."""
import asyncio
import json
import sys

import agents
import openai
import pydantic
import pydantic_ai
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

url, key = sys.argv[1:]
client = openai.AsyncOpenAI(base_url=url, api_key=key, max_retries=0)


class Town(pydantic.BaseModel):
    city: str
    people: int


def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


get_weather_tool = agents.function_tool(get_weather)


async def main():
    seen = {}
    for name, kind in {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}.items():
        model = kind("helper", provider=OpenAIProvider(openai_client=client))
        agent = pydantic_ai.Agent(model, output_type=Town)
        first = await agent.run(f"use a tool, and the town of pydantic-ai, {name}")
        seen[f"output_type {name}"] = first.output.model_dump()
        again = await agent.run(f"use a tool, and again the town of pydantic-ai, {name}", message_history=first.all_messages())
        seen[f"output_type again {name}"] = again.output.model_dump()
        agent = pydantic_ai.Agent(kind("plain", provider=OpenAIProvider(openai_client=client)), output_type=Town, retries=0)
        agent.tool_plain(get_weather)
        seen[f"output_type and a tool {name}"] = (await agent.run(f"the weather of a town of pydantic-ai, {name}")).output.model_dump()
    agents.set_tracing_disabled(True)
    for name, kind in {"chat": agents.OpenAIChatCompletionsModel, "responses": agents.OpenAIResponsesModel}.items():
        agent = agents.Agent(
            name="weather", tools=[get_weather_tool], model=kind(model="helper", openai_client=client),
            model_settings=agents.ModelSettings(tool_choice="required"),
        )
        result = await agents.Runner.run(agent, f"use a tool and the weather of the Agents SDK, {name}")
        calls = [item.raw_item.name for item in result.new_items if item.type == "tool_call_item"]
        seen[f"agents {name}"] = [calls, result.final_output]
    print(json.dumps(seen))


asyncio.run(main())
