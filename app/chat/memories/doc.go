// Package memories stores and searches the facts that users asked to keep: create, get, list,
// update, delete, search, reindex. The agent graph does not use it: no node reads a memory, and
// no prompt contains one.
//
// # Search
//
// A memory is found by the cosine between its vector and the query's. Only vectors of the
// current embedding model are compared; memories without one are stale, and every response says
// how many of the caller's are. A memory whose text could not be embedded is stored all the
// same: it is stale until Reindex.
//
// A search reads the vectors of the caller's memories in batches and compares each. So it finds
// what was committed before it began, by this process or by another replica. What is written
// during the search may be found in its old state.
package memories
