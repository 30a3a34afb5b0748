// The AI SDK (npm: ai, @ai-sdk/openai) as a page uses it, with its default provider: node aisdk.mjs
// VERSION URL KEY. Writes the texts of its scenarios as JSON.
const [, , version, baseURL, apiKey] = process.argv;
const { generateText, streamText, generateObject, tool, jsonSchema, stepCountIs } = await import(`ai${version}`);
const { createOpenAI } = await import(`ai${version}-openai`);

const provider = createOpenAI({ baseURL, apiKey });
const model = provider("plain");
const mark = `of the AI SDK ${version}`;
const seen = {};

const tools = {
  get_weather: tool({
    description: "The weather of a city.",
    inputSchema: jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false }),
    execute: async ({ city }) => `sunny in ${city}`,
  }),
};

// The steps of a loop with a tool go back as references to what the server stored.
const loop = await generateText({ model, tools, prompt: `the weather twice, ${mark}`, stopWhen: stepCountIs(5) });
seen.loop = [loop.text, loop.steps.length];

// So do the turns of a conversation.
const messages = [{ role: "user", content: `My name is Ann, ${mark}` }];
for (const next of [`And the second, ${mark}`, `And the third, ${mark}`, null]) {
  const turn = await generateText({ model, messages });
  seen.session ??= turn.response.headers["x-session-id"];
  seen.sessions = [...(seen.sessions ?? []), turn.response.headers["x-session-id"]];
  seen.turn = turn.text;
  messages.push(...turn.response.messages, ...(next ? [{ role: "user", content: next }] : []));
}

const stream = streamText({ model, prompt: `hello, ${mark}` });
seen.stream = "";
for await (const piece of stream.textStream) seen.stream += piece;

seen.object = (await generateObject({
  model, prompt: `a town as JSON, ${mark}`,
  schema: jsonSchema({ type: "object", properties: { city: { type: "string" }, people: { type: "number" } }, required: ["city", "people"], additionalProperties: false }),
})).object;

const forced = await generateText({ model: provider("helper"), tools: { get_weather: { ...tools.get_weather, execute: undefined } }, toolChoice: "required", prompt: `use a tool and the weather, ${mark}` });
seen.forced = forced.toolCalls.map((call) => call.toolName);

// Each step has a choice of its own.
for (const [name, of] of [["responses", provider("plain")], ["chat", provider.chat("plain")]]) {
  const steps = await generateText({ model: of, tools, toolChoice: "required", prompt: `the forced weather, ${mark}, ${name}`, stopWhen: stepCountIs(2) });
  seen[`forced steps ${name}`] = steps.steps.map((step) => step.finishReason);
}

seen.failure = await generateText({ model, prompt: `break always, ${mark}`, maxRetries: 0 }).then(() => "none", (error) => error.message);
console.log(JSON.stringify(seen));
