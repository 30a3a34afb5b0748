// Package llm defines language models: a Model streams typed deltas or ends with a typed
// error.
//
// Providers have packages of their own: llm/openai (every provider of the OpenAI dialect),
// llm/anthropic (Claude, also on clouds), llm/langchain (Ollama by langchaingo, and embeddings) and llm/demo (offline). All
// but the last send HTTP requests with llm/providerhttp. Registry finds the model of a name,
// WithRetry repeats calls that failed before their first delta, Collect joins a stream into
// one Response. The fake for tests is tests/llmtest.
//
// A Model and a Registry are safe for concurrent use.
package llm
