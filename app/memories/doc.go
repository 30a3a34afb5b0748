// Package memories is what can be done with the facts that users asked to keep:
// create, get, list, update, delete, search, reindex (W11). The agent graph does not
// know of it: no node reads a memory, and no prompt holds one (W1).
//
// # Search
//
// A memory is found by the cosine between its vector and the query's. Only vectors
// of the embedding model in use are compared; memories without one are stale, and
// every answer says how many of the caller's are. A memory whose text could not be
// embedded is stored all the same: it is stale until Reindex.
//
// Vectors are kept in memory, one index for each owner, as long as all of them
// together stay below a bound; the owner that was not asked for longest goes first.
// The rows of an owner who is larger than the bound are scanned, in batches.
//
// # What is promised
//
// An index is brought up to date at the beginning of every search, from the number
// that every write raises in the database. So a search finds what was committed
// before it began, by this process or by another replica. What is written while it
// runs may be found as it was.
package memories
