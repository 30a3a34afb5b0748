package agents

import (
	"fmt"
	"math"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/summarize"
)

// Bounds of the parameters of models.
const (
	maxIterations   = 1000 // model calls of a run; beyond it a loop is a mistake
	maxOutputTokens = 1_000_000
	maxTemperature  = 2
	maxStops        = 4 // as OpenAI takes
	maxStopBytes    = 256
	maxSchemaBytes  = 64 << 10
	maxSchemaDepth  = 32
)

// providerDefault holds for what no request says.
const providerDefault = "the provider's"

// numberBounds returns the bounds of a number.
func numberBounds(least, largest float64) *[2]float64 { return &[2]float64{least, largest} }

func agentKeys() []FileKey {
	return []FileKey{
		{Path: "name", Default: "required", Meaning: "the agent's name in sessions and in the API; a file with the name of a built-in agent replaces it", Bounds: "1 to 64 lower-case letters, digits, `-` and `_`, with a letter or digit first"},
		{Path: "description", Meaning: "a sentence about the agent, shown to callers of the API"},
		{Path: "model", Default: "`default_llm`", Meaning: "a name from `models` in the settings, a model known by its name (`gpt-4o`), or `provider/model`. A session or a message may choose another one"},
		{Path: "fallback_models", Meaning: "answer in this order, one call each, while the model is overloaded, rate-limited, unreachable, or rejects its key", Bounds: "known models, each once, not the model itself; one without its API key is skipped"},
		{Path: "system_prompt", Meaning: "the instructions before the conversation"},
		{Path: "tools", Meaning: "the tools that the agent may call: `calculator`, `current_time`, `read_result`, `search_history`, `search_memories`, `fetch_url` if the settings enable it, the names of files in `tools/`, and definitions ([TOOLS.md](TOOLS.md))", Bounds: "available tools, each once"},
		{Path: "max_iterations", Default: fmt.Sprint(core.DefaultMaxIterations), Meaning: "model calls of one run; the last one answers without tools (a model that calls one all the same is asked once more, without tools; then the run fails with `step_limit`)", within: numberBounds(1, maxIterations), zero: true, Bounds: fmt.Sprintf("1 to %d, or 0 for the default (%d)", maxIterations, core.DefaultMaxIterations)},
	}
}

func parameterKeys() []FileKey {
	return []FileKey{
		{Path: "temperature", Default: providerDefault, Meaning: "randomness in the choice of words", within: numberBounds(0, maxTemperature)},
		{Path: "top_p", Default: providerDefault, Meaning: "words are chosen from the most probable ones, up to this share of the probability", within: numberBounds(0, 1)},
		{Path: "max_output_tokens", Default: "the model's own limit", Meaning: "maximum tokens of an answer. The plan uses the lower of it and the model's limit, and keeps no more than this of `context.response_reserve` free", within: numberBounds(1, maxOutputTokens), zero: true, Bounds: fmt.Sprintf("1 to %d, or 0 for the model's own limit", maxOutputTokens)},
		{Path: "stop", Meaning: "texts that end the answer before the model would write them", Bounds: fmt.Sprintf("1 to %d texts of at most %d bytes", maxStops, maxStopBytes)},
		{Path: "seed", Default: providerDefault, Meaning: "with the same seed, the same request mostly gives the same answer", within: numberBounds(0, math.MaxInt32)},
		{Path: "reasoning_effort", Default: providerDefault, Meaning: "how much a reasoning model thinks before it answers; the provider's documentation says which values a model accepts", words: []string{"none", "minimal", "low", "medium", "high", "xhigh"}},
		{Path: "response_format.type", Default: "`text`", Meaning: "the format of every answer. With `json_object` the system prompt must ask for JSON, too", words: []string{string(core.FormatText), string(core.FormatJSONObject), string(core.FormatJSONSchema)}},
		{Path: "response_format.name", Default: "`" + core.DefaultSchemaName + "`", Meaning: "the schema's name, for `json_schema`", Bounds: "1 to 64 letters, digits, `-` and `_`"},
		{Path: "response_format.schema", Meaning: "the JSON Schema of the answer, written as YAML; required for `json_schema`", Bounds: fmt.Sprintf("at most %d KiB of JSON, %d levels", maxSchemaBytes>>10, maxSchemaDepth)},
		{Path: "response_format.strict", Default: providerDefault, Meaning: "whether the answer must follow the schema exactly; Anthropic's always do"},
	}
}

// ofPolicy is the default of settings that each policy has its own of.
const ofPolicy = "the policy's"

func contextKeys() []FileKey {
	count := "0 or more; 0 = off"
	return []FileKey{
		{Path: "context.policy", Default: "`" + contextwindow.DefaultPolicy + "`", Meaning: "the preset that the other keys override ([POLICIES.md](POLICIES.md))", words: contextwindow.PresetNames()},
		{Path: "context.auto_summarize", Default: ofPolicy, Meaning: "whether summaries are created automatically"},
		{Path: "context.usage_threshold", Default: ofPolicy, Meaning: "summarize above this share of the window, or of `max_context_tokens`", Bounds: "0 to 1; 0 = off"},
		{Path: "context.land_at", Default: ofPolicy, Meaning: "a summary brings the prompt down to this share of what triggered it", Bounds: "above 0 and below 1"},
		{Path: "context.max_messages_before_summary", Default: ofPolicy, Meaning: "summarize after this many messages since the last summary", Bounds: count + ", else above `min_recent_messages`"},
		{Path: "context.max_tokens_before_summary", Default: ofPolicy, Meaning: "summarize after this many tokens since the last summary", Bounds: count},
		{Path: "context.max_unsummarized_messages", Default: ofPolicy, Meaning: "summarize after this many messages without a summary, regardless of other settings", Bounds: count + ", else above `min_recent_messages`"},
		{Path: "context.window_messages", Default: ofPolicy, Meaning: "messages that stay in full in a sliding window", Bounds: count + ", else `min_recent_messages` or more"},
		{Path: "context.min_recent_messages", Default: ofPolicy, Meaning: "the newest messages, which a summary leaves in full", Bounds: "0 or more"},
		{Path: "context.max_context_tokens", Default: ofPolicy, Meaning: "plan as if the window had this many tokens", Bounds: count},
		{Path: "context.target_context_tokens", Default: ofPolicy, Meaning: "a summary brings the prompt down to at most this many tokens", Bounds: count},
		{Path: "context.response_reserve", Default: ofPolicy, Meaning: "tokens kept free for the answer; at most a quarter of the window", Bounds: "1 or more"},
		{Path: "context.summary_model", Default: "`context_summary_model`, else as the policy prefers", Meaning: "the model that writes summaries", Bounds: "a known model; without its API key summaries are made without a model"},
		{Path: "context.strategy", Default: ofPolicy, Meaning: "how summaries are written ([STRATEGIES.md](STRATEGIES.md))", words: summarize.Names()},
		{Path: "context.max_summary_tokens", Default: ofPolicy, Meaning: "maximum tokens of a summary; 0: by the share or the window", Bounds: "0 or more, below where a summary lands"},
		{Path: "context.max_summary_share", Default: ofPolicy, Meaning: "maximum share of the available tokens for a summary", Bounds: "0 to 0.5; 0 = off"},
		{Path: "context.timing", Default: ofPolicy, Meaning: "when summaries are created: before the call that needs them, after the run, or ahead of need", words: []string{string(contextwindow.TimingInline), string(contextwindow.TimingAfterRun), string(contextwindow.TimingBackground)}},
		{Path: "context.summary_role", Default: "`context_summary_role`, else `system`", Meaning: "role of the summary in the prompt", words: []string{string(core.RoleSystem), string(core.RoleUser)}},
		{Path: "context.recall", Default: "`" + string(contextwindow.RecallTool) + "`", Meaning: "how messages that the prompt does not show come back: prompts quote passages that the user's message asks for (and the tool), the agent searches with `search_history` if it has that tool, or not at all ([CONTEXT.md](CONTEXT.md#9-recall))",
			words: []string{string(contextwindow.RecallAuto), string(contextwindow.RecallTool), string(contextwindow.RecallOff)}},
		{Path: "context.recall_share", Default: "`0.1`", Meaning: "maximum share of the window for recalled passages", Bounds: "0 to 0.5; 0 = none"},
		{Path: "context.standing_instructions", Default: "`true`", Meaning: "whether what users set for the whole conversation is recognized in their messages and stays in prompts ([CONTEXT.md](CONTEXT.md#10-standing-instructions)); what is added by hand stays in any case"},
	}
}

func compactionKeys() []FileKey {
	keys := []FileKey{
		{Path: "compaction.enabled", Meaning: "replace the older part of a long tool loop by notes; with the policy `off` only if set explicitly"},
		{Path: "compaction.threshold_iterations", Meaning: "compact after this many rounds of tool calls", Bounds: "1 or more"},
		{Path: "compaction.keep_recent_iterations", Meaning: "the newest rounds, which stay in full", Bounds: "1 or more, below `threshold_iterations`"},
		{Path: "compaction.min_tokens", Meaning: "count rounds only above this size of the prompt; 0: always", Bounds: "0 or more"},
		{Path: "compaction.max_context_tokens", Meaning: "compact above this size of the prompt", Bounds: "0 or more; 0 = off"},
		{Path: "compaction.summary_model", Default: "the model of summaries", Meaning: "the model that writes the notes", Bounds: "a known model; without its API key the notes are made without a model"},
	}
	fields, err := contextwindow.Explain(contextwindow.Global{}, core.Agent{})
	if err != nil { // the defaults are valid
		return keys
	}
	for i, k := range keys {
		for _, f := range fields {
			if f.Name == k.Path && f.Value != "" {
				keys[i].Default = "`" + f.Value + "`"
			}
		}
	}
	return keys
}

func toolKeys() []FileKey {
	const at = "tool_settings." + anyTool + "."
	return []FileKey{
		{Path: at + "approval", Default: "`never`; for `fetch_url` without `allow_hosts`: `first`; for tools of files: as they say ([TOOLS.md](TOOLS.md))", Meaning: "whether a person must approve a call: each one, the first of a session, or none ([API.md](API.md#approvals))", Bounds: "`always`, `first`, `never`"},
		{Path: at + "timeout", Default: "`limits.tool_time`", Meaning: "how long one call may take", Bounds: fmt.Sprintf("%s to %s", leastToolTime, mostToolTime)},
		{Path: at + "max_output_bytes", Default: "`limits.tool_shown_bytes`", Meaning: "how much of a result prompts show; `read_result` reads the rest", Bounds: fmt.Sprintf("%d to %d", leastToolOutput, core.MaxToolResult)},
		{Path: at + "allow_hosts", Default: "all public hosts", Meaning: "hosts that `fetch_url` may read from", Bounds: "names such as `example.com`, or `*.example.com` for all subdomains"},
		{Path: at + "max_bytes", Default: "`tools.fetch_url.bytes`", Meaning: "how much `fetch_url` reads of one page", Bounds: fmt.Sprintf("%d to %d", leastPage, mostPage)},
	}
}
