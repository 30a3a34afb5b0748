package chat

// Cleaned is cleanTitle.
var Cleaned = cleanTitle
