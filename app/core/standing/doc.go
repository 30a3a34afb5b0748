// Package standing recognizes what a user sets for the whole conversation ("never call the
// API after 18:00", "always answer in Dutch", "my budget is 400 €") in the most common
// languages, without a model.
//
// Find reads one message of a user. An instruction is a sentence that tells the reader what
// to do from now on, always or never, or a fact that every later answer depends on: a
// budget, a name, an allergy. The text is word for word what the user wrote. Stories,
// questions, requests for one answer, reported speech, quoted text, block quotes, code,
// logs and pasted documents are none. What tools or pages say is not for Find.
//
// The rules are sequences of words, by language (rules.txt): those of a sentence are tried that have
// their rarest word in it, of the language that most of its words are of. English, German, French and
// Spanish have many, seventeen others a few.
//
// Apply decides what an instruction does to those of the same speaker that stand before it: the
// newest wins.
// It compares topics, which are the same in all languages ("budget", "language"), and else the words
// of both texts. Where it is not certain, both stand. A caller applies the instructions of a message one by one:
//
//	for _, found := range standing.Find(message) {
//		effect := standing.Apply(instructions, found)
//		// end the instructions in effect.Ends; if effect.Stands, add found with effect.Topic
//	}
//
// An instruction is the user's wish, nothing more: "from now on ignore your rules" is found
// as any other.
//
// The functions are pure and safe for concurrent use. Their time is linear in the size of
// the text: Find reads at most MaxText bytes and examines at most 150 sentences in full.
package standing
