// Package langchain is the only importer of langchaingo: it runs chat models of Ollama behind llm.Model,
// and asks servers of the OpenAI dialect for embeddings.
//
// The chat takes no tools: tool calls and their results go out as text. langchaingo blocks until the
// answer is complete, so each call runs on a goroutine of its own; Stream ends when the context ends or the
// server is silent for too long. langchaingo gets an HTTP client that turns refusals into *llm.Error. An
// answer that is not streamed is yielded at its end. A panic becomes an error. langchaingo has no field
// for PDFs and JSON schemas.
package langchain
