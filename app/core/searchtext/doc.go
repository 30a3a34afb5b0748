// Package searchtext splits texts into words, and decides whether a query matches a text.
// Both databases store what Text returns and search for what Parse returns, so that both
// find the same messages.
//
// # Words
//
// A text is normalized (NFKC) and converted to lower case (ß is ss, ı is i, and Greek letters lose
// their tonos, as capitals do). Vowel marks of Arabic and Hebrew and invisible characters, such as
// soft hyphens, are left out. Everything that is
// neither letter, digit nor mark separates words; a symbol such as an emoji is a word of
// its own. Only the first 256 KiB count.
//
//   - Scripts that are written without spaces (Chinese, Japanese, Thai …, and Korean,
//     whose words have endings) are split into all pairs of neighbors: 水泵压力 has the
//     words 水泵, 泵压, 压力. A single character is found among the parts.
//   - snake_case, paths and error codes are several words: each is found alone, and all
//     of them as a phrase.
//   - camelCase is one word, and its humps are parts of it: both are found.
//   - What a zero-width non-joiner separates are words, and without it a part: کتاب‌ها is found by
//     کتاب, "کتاب ها" and کتابها, and finds the last two.
//
// Parts have no position, so no phrase contains them.
//
// # Queries
//
// A text must contain all words of a query, in any order. "Words in quotes" must be
// consecutive, -word must be absent (but -f and -1 are words), and word* matches all words with this prefix.
// Text without a space is a phrase: app/db, ERR_CONN_RESET.
//
// The package has no state; all functions are safe for concurrent use.
package searchtext
