// Package standing recognizes what a user sets for the whole conversation ("never call the
// API after 18:00", "always answer in Dutch", "my budget is 400 €") in English, German,
// French and Spanish, without a model.
//
// Find reads one message of a user. An instruction is a sentence that tells the reader what
// to do from now on, always or never, or a fact that every later answer depends on: a
// budget, a name, an allergy. The text is word for word what the user wrote. Stories,
// questions, requests for one answer, reported speech, quoted text, block quotes, code,
// logs and pasted documents are none. What tools or pages say is not for Find.
//
// Tables of patterns of words for each language recognize what is written with care (english.go
// …). What they leave is read as concepts, which are the same in all languages (lexicon.txt), and
// compared with patterns of these (grammar.go): informal wordings, such as nominal phrases, wishes
// and statements.
//
// Apply decides what an instruction does to those of the same speaker that stand before it: the
// newest wins.
// It compares topics, which are the same in all languages ("budget", "language"), and else
// the words of both texts, and the kinds of values in them ("prices in dollars", "prices in
// euros"). What only the grammar finds changes or withdraws what fills the same slot, a closed
// kind of value ("crowns from now on, not euros"), and nothing else: an instruction that is
// lost is worse than one too many. A caller applies the instructions of a message one by one:
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
