// Package langchain runs models of langchaingo behind llm.Model. It is the only importer of
// langchaingo.
//
// FromModel adapts any llms.Model; New opens one of the Providers that settings can name, each of
// which is one row of a table. None of them takes tools: tool calls and their results go out as text.
//
//   - langchaingo blocks until the answer is complete, and some of its providers ignore the context.
//     Each call runs on a goroutine of its own; Stream ends when the context ends or the provider is
//     silent for too long.
//   - Errors are flattened to text. A provider that accepts an HTTP client gets one that turns
//     refusals into *llm.Error; of the others the text is classified.
//   - An answer that is not streamed is yielded at its end. A panic of a provider becomes an error.
//
// Mistral's client ignores the context: a canceled request goes on in the background until Mistral
// has answered, at most requestTime. langchaingo has no field for PDFs and JSON schemas.
package langchain
