// Package searchtext says which words a text has, and whether a query finds it.
// It is the one place that knows; the databases only keep what Text returns and
// look for what Parse returns, so that both find the same.
//
// # Words
//
// A text is brought into compatibility form (NFKC) and lower case (ß is ss), and
// cut at everything that is neither letter, digit nor mark; a symbol such as an
// emoji is a word of its own. Only its first 256 KiB count.
//
//   - Scripts that are written without spaces (Chinese, Japanese, Thai …, and
//     Korean, whose words grow endings) give every pair of neighbors: 水泵压力 has the
//     words 水泵, 泵压, 压力. A single character is looked for among the parts.
//   - snake_case, paths and error codes are words one after the other: each is found
//     alone, and the whole as a phrase.
//   - camelCase is one word, its humps are parts of it: both are found.
//
// A part has no place in the order of words, so that no phrase goes through it.
//
// # Queries
//
// All words of a query must be there, in any order. "Words in quotes" must follow
// each other, -word must not be there, and word* stands for all words that begin
// so. What is written without a space is looked for as it is written: app/db and
// ERR_CONN_RESET are phrases.
//
// Nothing here keeps anything; all functions are safe for concurrent use.
package searchtext
