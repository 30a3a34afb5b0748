package tokens

import "strings"

// builtinModels returns the built-in table. The numbers are those that the providers publish; if the hosts of an
// open model differ, the smaller. If a provider limits the prompt below the window (GPT-5: 272,000 of 400,000), the
// table has that limit. The factors are our own: cl100k_base and o200k_base are 1; the others are upper estimates
// from published data about their tokenizers; calibration replaces them.
func builtinModels() (rows []ModelInfo) {
	for _, m := range modelLimits {
		for name := range strings.FieldsSeq(m.names) {
			rows = append(rows, ModelInfo{Name: name, Window: m.window, MaxOutput: m.maxOutput, Factor: m.factor})
		}
	}
	return rows
}

// modelLimits are the normalized names of the models with equal limits.
//
//nolint:gochecknoglobals // a constant table
var modelLimits = []struct {
	window, maxOutput int // as in ModelInfo
	factor            float64
	names             string
}{
	// OpenAI; gpt-35 is Azure's name.
	{16_385, 4_096, 1, "gpt-3-5-turbo gpt-35-turbo"},
	{4_096, 4_096, 1, "gpt-3-5-turbo-0301 gpt-3-5-turbo-0613 gpt-3-5-turbo-instruct"},
	{8_192, 8_192, 1, "gpt-4"},
	{32_768, 32_768, 1, "gpt-4-32k"},
	{128_000, 4_096, 1, "gpt-4-0125 gpt-4-1106 gpt-4-turbo gpt-4-vision gpt-4o-2024-05-13"},
	{1_047_576, 32_768, 1, "gpt-4-1"},
	{128_000, 16_384, 1, "gpt-4-5 gpt-4o chatgpt-4o gpt-5-chat gpt-5-1-chat gpt-5-2-chat gpt-5-3-chat"},
	{272_000, 128_000, 1, "gpt-5 gpt-5-4-mini gpt-5-4-nano"},
	{922_000, 128_000, 1, "gpt-5-4 gpt-5-5"},
	{131_072, 32_768, 1, "gpt-oss"},
	{200_000, 100_000, 1, "o1 o3 o4-mini codex-mini"},
	{128_000, 65_536, 1, "o1-mini"},
	{128_000, 32_768, 1, "o1-preview"},
	// Anthropic: the tokenizer since Opus 4.7 needs up to 35 % more tokens.
	{200_000, 0, 1.55, "claude"},
	{100_000, 4_096, 1.2, "claude-instant claude-2"},
	{200_000, 4_096, 1.2, "claude-2-1 claude-3"},
	{200_000, 8_192, 1.2, "claude-3-5"},
	{200_000, 64_000, 1.2, "claude-3-7 claude-sonnet-4 claude-opus-4-5 claude-haiku-4-5"},
	{200_000, 32_000, 1.2, "claude-opus-4"},
	{1_000_000, 128_000, 1.2, "claude-opus-4-6 claude-sonnet-4-6"},
	{1_000_000, 128_000, 1.55, "claude-opus-4-7 claude-opus-4-8 claude-opus-5 claude-sonnet-5 claude-haiku-5 claude-fable-5 claude-mythos-5"},
	// Google; gemini-flash-latest and the like are names for the newest.
	{32_760, 8_192, 1.1, "gemini"},
	{1_000_000, 8_192, 1.1, "gemini-1-5"},
	{1_048_576, 8_192, 1.1, "gemini-2-0"},
	{1_048_576, 65_536, 1.1, "gemini-2-5"},
	{32_768, 32_768, 1.1, "gemini-2-5-flash-image"},
	{1_000_000, 65_536, 1.1, "gemini-3 gemini-flash"},
	{65_536, 32_768, 1.1, "gemini-3-pro-image"},
	{8_192, 8_192, 1.1, "gemma"},
	{131_072, 8_192, 1.1, "gemma-3 gemma3"},
	{32_768, 8_192, 1.1, "gemma-3-1b gemma-3n gemma3n"},
	// "llama3.1" is Ollama's spelling, "Llama-3.1" that of others.
	{4_096, 4_096, 1.25, "llama-2 llama2 vicuna"},
	{16_384, 4_096, 1.25, "codellama"},
	{2_048, 2_048, 1.25, "tinyllama"},
	{8_192, 8_192, 1.05, "llama-3 llama3 meta-llama-3"},
	{128_000, 8_192, 1.05, "llama-3-1 llama3-1 meta-llama-3-1 llama-3-2 llama3-2 llama-3-3 llama3-3 hermes-3 nemotron"},
	{131_072, 8_192, 1.05, "llama-4 llama4"},
	// Mistral.
	{32_768, 8_192, 1.25, "mistral open-mistral-7b mixtral open-mixtral mistral-large-2402 codestral"},
	{65_536, 8_192, 1.25, "mixtral-8x22b open-mixtral-8x22b"},
	{128_000, 8_192, 1.1, "mistral-nemo open-mistral-nemo mistral-small-2503 mistral-small-2506 mistral-small3-1 mistral-small3-2 mistral-medium mistral-large ministral pixtral devstral"},
	{32_768, 8_192, 1.1, "mistral-small"},
	{40_000, 8_192, 1.1, "magistral"},
	// Qwen.
	{8_192, 8_192, 1.1, "qwen"},
	{32_768, 8_192, 1.1, "qwen-max qwen2 qwen-2 qwen3 qwen-3 qwq"},
	{131_072, 8_192, 1.1, "qwen-plus qwen-turbo"},
	{262_144, 65_536, 1.1, "qwen3-coder qwen3-max"},
	{262_144, 32_768, 1.1, "qwen3-next"},
	// others; the offline model counts as we do.
	{DefaultWindow, 0, 1, "demo"},
	{65_536, 8_192, 1.15, "deepseek"},
	{128_000, 8_192, 1.15, "deepseek-chat deepseek-coder-v2 deepseek-v2 deepseek-v3"},
	{128_000, 65_536, 1.15, "deepseek-reasoner"},
	{16_384, 4_096, 1.15, "deepseek-coder"},
	{128_000, 32_768, 1.15, "deepseek-r1"},
	{2_048, 2_048, 1.25, "phi falcon"},
	{4_096, 4_096, 1.25, "phi-3 phi3 yi solar granite"},
	{8_192, 4_096, 1, "phi-3-small"},
	{131_072, 4_096, 1.25, "phi-3-mini-128k phi-3-medium-128k phi-3-5 phi3-5"},
	{131_072, 4_096, 1, "phi-3-small-128k"},
	{16_384, 16_384, 1.05, "phi-4 phi4"},
	{131_072, 4_096, 1.05, "phi-4-mini phi4-mini"},
	{4_096, 4_096, 1.15, "command titan-text"},
	{128_000, 4_096, 1.15, "command-r"},
	{256_000, 8_192, 1.15, "command-a"},
	{131_072, 0, 1.15, "grok moonshot-v1-128k kimi-k2"},
	{256_000, 0, 1.15, "grok-4"},
	{2_000_000, 0, 1.15, "grok-4-fast grok-4-1-fast"},
	{8_192, 0, 1.15, "moonshot-v1-8k"},
	{32_768, 0, 1.15, "moonshot-v1-32k"},
	{128_000, 0, 1.15, "glm-4"},
	{200_000, 128_000, 1.15, "glm-4-6 glm-5"},
	{196_608, 0, 1.15, "minimax-m2"},
	{300_000, 5_120, 1.15, "nova"},
	{128_000, 5_120, 1.15, "nova-micro"},
	{8_192, 8_192, 1.15, "titan-text-express"},
	{32_000, 3_072, 1.15, "titan-text-premier"},
	{256_000, 4_096, 1.15, "jamba"},
	{32_768, 4_096, 1, "dbrx"},
	{8_192, 8_192, 1.25, "starcoder smollm2"},
	{128_000, 8_192, 1.25, "granite3"},
}
