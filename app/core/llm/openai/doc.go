// Package openai calls every provider of the OpenAI dialect: OpenAI, Gemini's OpenAI
// endpoint, Ollama, vLLM, llama.cpp, Mistral, OpenRouter.
//
// A Model builds the JSON body, sends it through providerhttp, reads the stream and yields
// each delta. It starts no goroutine; a loop over Stream that ends has ended its request.
//
// # What answers and requests must cope with
//
// Each line has tests of its number, here or among the scenarios of tests/adapters. Most are faults of langchaingo's OpenAI client v0.1.14,
// which this package replaced; several servers of the dialect need them as well.
//
//	O1   cancel in mid-stream                 KindCanceled, with the context's cause
//	O2   truncated stream                     KindTruncated
//	O3   error event in mid-stream            typed like any refusal
//	O4   interleaved parallel tool calls      pieces are joined by index
//	O5   type repeated in every fragment      as O4
//	O6   empty fragment                       ignored
//	O7   first fragment without type          as O4
//	O8   text and tool calls                  separate fields of llm.Delta
//	O9   finish reason, then null             the last real one counts
//	O10  long lines                           8 MiB a line, 64 MiB an answer
//	O11  errors                               status, code, request id, Retry-After, kind
//	O12  network and context errors           kept and wrapped
//	O13  temperature                          only if requested; never to o1…, gpt-5…
//	O15  images and PDFs                      data URLs; PDFs as file parts
//	O16  text of messages                     all of it is sent
//	O17  several choices                      n is never sent; only the first choice is read
//	O18  request id                           is in the error
//	O19  OpenRouter's field reasoning         read like reasoning_content
//	O20  system prompt of o1 and o3           stays a system message
//
// # What differs between providers
//
//   - The output limit is max_completion_tokens for OpenAI and max_tokens for all others.
//     Mistral gets no stream_options.
//   - Info.Lacks has the parameters that a model is known not to take. Models with unknown
//     names are assumed to take all of them. Mistral calls the seed random_seed.
//   - Ollama ignores tool_choice, so a turn that must not use tools is sent as text without
//     the tool list. Its OpenAI endpoint cannot set the context length and cuts longer
//     prompts silently: Info.Window must be the context length of the server.
//   - Gemini leaves out the index of tool calls or numbers all of them 0, and requires the
//     signature of a call in later prompts (core.ToolCall.Signature). Signatures of plain
//     text are not kept; Gemini does not require those. Its schemas have one type: one that may
//     be null is sent with nullable.
//   - Tool call ids that a provider does not take (Mistral: nine letters or digits; all:
//     over 40 bytes) are replaced by a hash, in the call and in its result.
//   - A server that answers with plain JSON, although asked to stream, works.
//   - Models that still refuse a system message (o1-mini, o1-preview) answer with
//     KindInvalid.
//
// # Known limits
//
// The id of an answer is not kept. Azure's own dialect is not supported; its
// OpenAI-compatible v1 endpoint is.
package openai
