// Package langchain runs models of langchaingo behind llm.Model. It is the only
// importer of langchaingo.
//
// FromModel adapts any llms.Model. New opens one of the providers that settings can
// name (Providers); each is one row of a table in providers.go.
//
// What the adapter does for every provider:
//
//   - langchaingo blocks until the answer is complete, and some of its providers ignore
//     the context. Each call runs on a goroutine of its own; Stream returns as soon as
//     the context ends or the provider is silent for too long.
//   - Errors are flattened to text. A provider that accepts an HTTP client gets one that
//     turns error statuses into *llm.Error; of the others the text is classified.
//   - An answer that is not streamed is yielded at its end. Requests with tools are never
//     streamed, because langchaingo mixes tool calls into the text of the stream.
//   - Finish reasons and token counts have different names in each provider.
//   - A panic of a provider becomes an error.
//
// # Known limits
//
//   - Mistral's client ignores the context: a canceled request goes on in the background
//     until Mistral has answered, at most requestTime.
//   - Reasoning is yielded at the end of the answer.
//   - PDFs and JSON schemas are not supported; langchaingo has no field for them.
package langchain
