// Package embed turns texts into vectors whose cosine says how near they are.
//
// Hashing is the one that is always there: it needs no model and no network, and
// finds texts that share words, parts of words or CJK characters. It knows nothing
// of meaning: "car" and "automobile" are strangers to it. Embedders that do stand
// in llm/langchain.
//
// Everything here is safe for concurrent use.
package embed
