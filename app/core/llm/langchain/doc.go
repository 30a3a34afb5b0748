// Package langchain is the only importer of langchaingo: it runs chat models of Ollama behind llm.Model,
// and asks servers of the OpenAI dialect for embeddings.
//
// The chat takes no tools: tool calls and their results go out as text. Each call has an HTTP client of its
// own, which has the time limits and keeps the cause of a failure. langchaingo has no field for PDFs and JSON
// schemas.
package langchain
