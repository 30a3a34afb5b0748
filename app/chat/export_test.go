package chat

// Cleaned is cleaned, and FirstWords firstWords.
var (
	Cleaned    = cleanTitle
	FirstWords = firstWords
)
