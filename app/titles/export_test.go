package titles

// Cleaned is cleaned, and FirstWords firstWords.
var (
	Cleaned    = cleaned
	FirstWords = firstWords
)
