// Package llm is what Bobbin knows of language models: a Model streams typed
// deltas or ends with a typed error.
//
// Providers stand behind it in their own packages: llm/langchain (every provider
// of the OpenAI dialect), llm/anthropic (Claude) and llm/demo (offline); the first
// two make their HTTP exchanges through llm/exchange. Registry finds the model that a
// name stands for, WithRetry repeats calls that failed before they said
// anything, Collect gathers a stream into one Response, and Scripted is the fake
// for tests.
//
// A Model and a Registry are safe for concurrent use.
package llm
