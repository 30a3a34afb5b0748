package tokens

// builtinModels returns the built-in table: normalized name, window, max tokens of an
// answer (0 = not known), prior factor. The numbers are those that the providers
// publish; if the hosts of an open model differ, the smaller. If a provider limits the
// prompt below the window (GPT-5: 272,000 of 400,000), the table has that limit. The
// factors are our own: cl100k_base and o200k_base are 1; the others are upper estimates
// from published data about their tokenizers; calibration replaces them.
func builtinModels() []ModelInfo {
	var rows []ModelInfo
	for _, family := range [][]ModelInfo{openAIModels(), anthropicModels(), googleModels(), llamaModels(), mistralModels(), qwenModels(), otherModels()} {
		rows = append(rows, family...)
	}
	return rows
}

func openAIModels() []ModelInfo {
	return []ModelInfo{
		{"gpt-3-5-turbo", 16_385, 4_096, 1},
		{"gpt-3-5-turbo-0301", 4_096, 4_096, 1},
		{"gpt-3-5-turbo-0613", 4_096, 4_096, 1},
		{"gpt-3-5-turbo-instruct", 4_096, 4_096, 1},
		{"gpt-35-turbo", 16_385, 4_096, 1}, // Azure's name
		{"gpt-4", 8_192, 8_192, 1},
		{"gpt-4-32k", 32_768, 32_768, 1},
		{"gpt-4-0125", 128_000, 4_096, 1},
		{"gpt-4-1106", 128_000, 4_096, 1},
		{"gpt-4-turbo", 128_000, 4_096, 1},
		{"gpt-4-vision", 128_000, 4_096, 1},
		{"gpt-4-1", 1_047_576, 32_768, 1}, // 4.1
		{"gpt-4-5", 128_000, 16_384, 1},
		{"gpt-4o", 128_000, 16_384, 1},
		{"gpt-4o-2024-05-13", 128_000, 4_096, 1},
		{"chatgpt-4o", 128_000, 16_384, 1},
		{"gpt-5", 272_000, 128_000, 1},
		{"gpt-5-chat", 128_000, 16_384, 1},
		{"gpt-5-1-chat", 128_000, 16_384, 1},
		{"gpt-5-2-chat", 128_000, 16_384, 1},
		{"gpt-5-3-chat", 128_000, 16_384, 1},
		{"gpt-5-4", 922_000, 128_000, 1},
		{"gpt-5-4-mini", 272_000, 128_000, 1},
		{"gpt-5-4-nano", 272_000, 128_000, 1},
		{"gpt-5-5", 922_000, 128_000, 1},
		{"gpt-oss", 131_072, 32_768, 1},
		{"o1", 200_000, 100_000, 1},
		{"o1-mini", 128_000, 65_536, 1},
		{"o1-preview", 128_000, 32_768, 1},
		{"o3", 200_000, 100_000, 1},
		{"o4-mini", 200_000, 100_000, 1},
		{"codex-mini", 200_000, 100_000, 1},
	}
}

// anthropicModels has two factors: the tokenizer since Opus 4.7 needs up to 35 % more
// tokens.
func anthropicModels() []ModelInfo {
	const before, since = 1.2, 1.55
	return []ModelInfo{
		{"claude", 200_000, 0, since},
		{"claude-instant", 100_000, 4_096, before},
		{"claude-2", 100_000, 4_096, before},
		{"claude-2-1", 200_000, 4_096, before},
		{"claude-3", 200_000, 4_096, before},
		{"claude-3-5", 200_000, 8_192, before},
		{"claude-3-7", 200_000, 64_000, before},
		{"claude-opus-4", 200_000, 32_000, before},
		{"claude-sonnet-4", 200_000, 64_000, before},
		{"claude-opus-4-5", 200_000, 64_000, before},
		{"claude-sonnet-4-5", 200_000, 64_000, before},
		{"claude-haiku-4-5", 200_000, 64_000, before},
		{"claude-opus-4-6", 1_000_000, 128_000, before},
		{"claude-sonnet-4-6", 1_000_000, 128_000, before},
		{"claude-opus-4-7", 1_000_000, 128_000, since},
		{"claude-opus-4-8", 1_000_000, 128_000, since},
		{"claude-opus-5", 1_000_000, 128_000, since},
		{"claude-sonnet-5", 1_000_000, 128_000, since},
		{"claude-haiku-5", 1_000_000, 128_000, since},
		{"claude-fable-5", 1_000_000, 128_000, since},
		{"claude-mythos-5", 1_000_000, 128_000, since},
	}
}

func googleModels() []ModelInfo {
	const gemini, gemma = 1.1, 1.1
	return []ModelInfo{
		{"gemini", 32_760, 8_192, gemini},
		{"gemini-1-0", 32_760, 8_192, gemini},
		{"gemini-pro", 32_760, 8_192, gemini},
		{"gemini-1-5", 1_000_000, 8_192, gemini},
		{"gemini-2-0", 1_048_576, 8_192, gemini},
		{"gemini-2-5", 1_048_576, 65_536, gemini},
		{"gemini-2-5-flash-image", 32_768, 32_768, gemini},
		{"gemini-3", 1_000_000, 65_536, gemini},
		{"gemini-flash", 1_000_000, 65_536, gemini}, // gemini-flash-latest, -lite-latest: names for the newest
		{"gemini-3-pro-image", 65_536, 32_768, gemini},
		{"gemma", 8_192, 8_192, gemma},
		{"gemma-3", 131_072, 8_192, gemma},
		{"gemma3", 131_072, 8_192, gemma},
		{"gemma-3-1b", 32_768, 8_192, gemma},
		{"gemma-3n", 32_768, 8_192, gemma},
		{"gemma3n", 32_768, 8_192, gemma},
	}
}

// llamaModels has both spellings: "llama3.1" is Ollama's, "Llama-3.1" is used elsewhere.
func llamaModels() []ModelInfo {
	const two, three = 1.25, 1.05
	return []ModelInfo{
		{"llama-2", 4_096, 4_096, two},
		{"llama2", 4_096, 4_096, two},
		{"codellama", 16_384, 4_096, two},
		{"tinyllama", 2_048, 2_048, two},
		{"vicuna", 4_096, 4_096, two},
		{"llama-3", 8_192, 8_192, three},
		{"llama3", 8_192, 8_192, three},
		{"meta-llama-3", 8_192, 8_192, three},
		{"llama-3-1", 128_000, 8_192, three},
		{"llama3-1", 128_000, 8_192, three},
		{"meta-llama-3-1", 128_000, 8_192, three},
		{"llama-3-2", 128_000, 8_192, three},
		{"llama3-2", 128_000, 8_192, three},
		{"llama-3-3", 128_000, 8_192, three},
		{"llama3-3", 128_000, 8_192, three},
		{"llama-4", 131_072, 8_192, three},
		{"llama4", 131_072, 8_192, three},
		{"hermes-3", 128_000, 8_192, three},
		{"nemotron", 128_000, 8_192, three},
	}
}

func mistralModels() []ModelInfo {
	const old, tekken = 1.25, 1.1
	return []ModelInfo{
		{"mistral", 32_768, 8_192, old},
		{"open-mistral-7b", 32_768, 8_192, old},
		{"mixtral", 32_768, 8_192, old},
		{"mixtral-8x22b", 65_536, 8_192, old},
		{"open-mixtral", 32_768, 8_192, old},
		{"open-mixtral-8x22b", 65_536, 8_192, old},
		{"mistral-nemo", 128_000, 8_192, tekken},
		{"open-mistral-nemo", 128_000, 8_192, tekken},
		{"mistral-small", 32_768, 8_192, tekken},
		{"mistral-small-2503", 128_000, 8_192, tekken},
		{"mistral-small-2506", 128_000, 8_192, tekken},
		{"mistral-small3-1", 128_000, 8_192, tekken},
		{"mistral-small3-2", 128_000, 8_192, tekken},
		{"mistral-medium", 128_000, 8_192, tekken},
		{"mistral-large", 128_000, 8_192, tekken},
		{"mistral-large-2402", 32_768, 8_192, old},
		{"ministral", 128_000, 8_192, tekken},
		{"pixtral", 128_000, 8_192, tekken},
		{"codestral", 32_768, 8_192, old},
		{"devstral", 128_000, 8_192, tekken},
		{"magistral", 40_000, 8_192, tekken},
	}
}

func qwenModels() []ModelInfo {
	const factor = 1.1
	return []ModelInfo{
		{"qwen", 8_192, 8_192, factor},
		{"qwen-max", 32_768, 8_192, factor},
		{"qwen-plus", 131_072, 8_192, factor},
		{"qwen-turbo", 131_072, 8_192, factor},
		{"qwen2", 32_768, 8_192, factor},
		{"qwen-2", 32_768, 8_192, factor},
		{"qwen2-5", 32_768, 8_192, factor},
		{"qwen-2-5", 32_768, 8_192, factor},
		{"qwen3", 32_768, 8_192, factor},
		{"qwen-3", 32_768, 8_192, factor},
		{"qwen3-coder", 262_144, 65_536, factor},
		{"qwen3-max", 262_144, 65_536, factor},
		{"qwen3-next", 262_144, 32_768, factor},
		{"qwq", 32_768, 8_192, factor},
	}
}

func otherModels() []ModelInfo {
	const typical = 1.15
	return []ModelInfo{
		{"demo", DefaultWindow, 0, 1}, // the offline model counts as we do
		{"deepseek", 65_536, 8_192, typical},
		{"deepseek-chat", 128_000, 8_192, typical},
		{"deepseek-reasoner", 128_000, 65_536, typical},
		{"deepseek-coder", 16_384, 4_096, typical},
		{"deepseek-coder-v2", 128_000, 8_192, typical},
		{"deepseek-v2", 128_000, 8_192, typical},
		{"deepseek-v3", 128_000, 8_192, typical},
		{"deepseek-r1", 128_000, 32_768, typical},
		{"phi", 2_048, 2_048, 1.25},
		{"phi-3", 4_096, 4_096, 1.25},
		{"phi3", 4_096, 4_096, 1.25},
		{"phi-3-small", 8_192, 4_096, 1},
		{"phi-3-mini-128k", 131_072, 4_096, 1.25},
		{"phi-3-small-128k", 131_072, 4_096, 1},
		{"phi-3-medium-128k", 131_072, 4_096, 1.25},
		{"phi-3-5", 131_072, 4_096, 1.25},
		{"phi3-5", 131_072, 4_096, 1.25},
		{"phi-4", 16_384, 16_384, 1.05},
		{"phi4", 16_384, 16_384, 1.05},
		{"phi-4-mini", 131_072, 4_096, 1.05},
		{"phi4-mini", 131_072, 4_096, 1.05},
		{"command", 4_096, 4_096, typical},
		{"command-r", 128_000, 4_096, typical},
		{"command-a", 256_000, 8_192, typical},
		{"command-r7b", 128_000, 4_096, typical},
		{"grok", 131_072, 0, typical},
		{"grok-4", 256_000, 0, typical},
		{"grok-4-fast", 2_000_000, 0, typical},
		{"grok-4-1-fast", 2_000_000, 0, typical},
		{"moonshot-v1-8k", 8_192, 0, typical},
		{"moonshot-v1-32k", 32_768, 0, typical},
		{"moonshot-v1-128k", 131_072, 0, typical},
		{"kimi-k2", 131_072, 0, typical},
		{"glm-4", 128_000, 0, typical},
		{"glm-4-6", 200_000, 128_000, typical},
		{"glm-5", 200_000, 128_000, typical},
		{"minimax-m2", 196_608, 0, typical},
		{"nova", 300_000, 5_120, typical},
		{"nova-micro", 128_000, 5_120, typical},
		{"titan-text", 4_096, 4_096, typical},
		{"titan-text-express", 8_192, 8_192, typical},
		{"titan-text-premier", 32_000, 3_072, typical},
		{"jamba", 256_000, 4_096, typical},
		{"dbrx", 32_768, 4_096, 1},
		{"yi", 4_096, 4_096, 1.25},
		{"falcon", 2_048, 2_048, 1.25},
		{"solar", 4_096, 4_096, 1.25},
		{"starcoder", 8_192, 8_192, 1.25},
		{"smollm2", 8_192, 8_192, 1.25},
		{"granite", 4_096, 4_096, 1.25},
		{"granite3", 128_000, 8_192, 1.25},
	}
}
