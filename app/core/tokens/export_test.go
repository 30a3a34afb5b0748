package tokens

// VocabularyData is the embedded vocabulary.
func VocabularyData() string { return vocabularyData }

// Builtin returns the built-in table.
func Builtin() []ModelInfo { return builtinModels() }
