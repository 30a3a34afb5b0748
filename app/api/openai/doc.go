// Package openai serves the OpenAI API over Bobbin's own use cases: chat completions, models and
// embeddings, for clients that cannot be changed.
//
// A client of this API sends its whole conversation with each request. A request that names a
// session (see sessionName) is compared with the session's log: what the log has already is not
// stored again, a history that continues the log appends to it, and another one becomes a branch.
// A request without a session gets a temporary one.
package openai
