// Package langchain speaks to every provider of the OpenAI dialect: OpenAI,
// Gemini's OpenAI endpoint, Ollama, vLLM, llama.cpp, Mistral, OpenRouter. It is
// the only importer of langchaingo.
//
// langchaingo v0.1.14 builds the request. From there on a conversation, which
// stands in for its HTTP client, does the rest: it edits the JSON body, sends
// it, turns refusals into *llm.Error, reads the stream itself and hands each
// delta to the caller. langchaingo sees an empty answer. No goroutine is
// started; a loop over Stream that ends has ended its request.
//
// # Faults of langchaingo that are repaired
//
// Each has a test of its name against a scripted server; most tests show the
// fault in plain langchaingo too, so that they say when it is no longer needed.
//
//	O1   a cancel in mid-stream looked like success          KindCanceled, with the context's cause
//	O2   a truncated stream looked like success              KindTruncated
//	O3   error events in mid-stream were ignored             typed like any refusal
//	O4   interleaved parallel calls were merged              pieces are put together by index
//	O5   a repeated type made a call of every fragment       as O4
//	O6   an empty fragment made a phantom call               says nothing, is nothing
//	O7   a first fragment without type was dropped           as O4
//	O8   text and tool calls came as one byte stream         separate fields of llm.Delta
//	O9   the finish reason was wiped out by a later null     the last real one counts
//	O10  a line over 64 KiB was an error "token limit"       8 MiB a line, 64 MiB an answer
//	O11  errors were strings                                 status, code, request id, Retry-After, kind
//	O12  errors of the network and the context were lost     kept and wrapped
//	O13  temperature 0 was always sent                       only what was asked for; never to o1…, gpt-5
//	O14  top_p, parallel_tool_calls, … were never sent       Options.Extra
//	O15  images were sent in a form that is refused          sent as data URLs
//	O18  answer headers were lost                            the request id is in the error
//	O19  OpenRouter's field reasoning was ignored            read, as reasoning_content is
//	O20  o1 and o3: the system prompt became the user's      langchaingo is not told the model's name
//
// # Faults that are avoided or refused
//
//	O16  a cached part became empty text                     never built
//	O17  several choices were mixed up                       n is never sent and cannot be set; only the first choice is read
//
// # What differs between providers
//
//   - The output limit goes out as max_completion_tokens to OpenAI and as
//     max_tokens to everybody else. Mistral gets no stream_options.
//   - Ollama ignores tool_choice, so a turn that must not use tools is sent as
//     text without the tool list (W13). Its OpenAI endpoint cannot set the context
//     length and cuts longer prompts silently: Info.Window must be what the server
//     was started with.
//   - Gemini leaves out the index of tool calls or calls all of them 0, and wants
//     the signature of a call back with it (core.ToolCall.Signature). Signatures of
//     plain text are not kept; Gemini does not insist on those.
//   - Tool call ids that a provider does not take (Mistral: nine letters or digits;
//     all: over 40 bytes) are replaced by a hash, alike in call and result.
//   - A server that answers with plain JSON, although asked to stream, works.
//   - Models that still refuse a system message (o1-mini, o1-preview) answer with
//     KindInvalid.
//
// # Known limits
//
// The id and the model of an answer are not kept (O18). Azure's own dialect is not
// supported; its OpenAI-compatible v1 endpoint is.
package langchain
