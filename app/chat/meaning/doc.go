// Package meaning finds messages of a session by what they mean, beside what words they have.
// It needs an embedding model; without one messages are searched by words alone.
//
// # Vectors
//
// Embedder.Run embeds the texts of users and models in the background: one process at a time, by
// a lease, in batches, session by session in the order of the log. How far a session is
// embedded is stored with the vectors, so a restart goes on there. An edit marks the vector as outdated, and a deletion
// removes it, each in its own transaction. Another model, or another dimension of its vectors,
// begins anew. Each batch is recorded as a call of the session's owner, and an owner who may
// spend no more is passed over.
//
// # Search
//
// Search asks for the ranking by words, and compares the query with the newest
// 20,000 vectors of the session. Both
// rankings are joined by their scores, with those of the messages before and after (ADR 0026).
// If the embedding model fails, the ranking by words is the result, and says so; for a while the
// model is not asked again. What names phrases or excludes words, what is sorted by time, and
// what searches several sessions is searched by words alone.
//
// All types are safe for concurrent use. Embedder.Run owns its goroutine.
package meaning
