// Package garbage measures which answers of models become the summary of a conversation:
// bad ones, as models, proxies and providers really give them, and good ones, as
// large and small models write them, in four languages.
//
// testdata has two conversations a language. <language>.txt is the one by which the
// gate's numbers were chosen; <language>.heldout.txt was written afterwards. Its good
// summaries paraphrase. Each has a summary of its first half, which the
// answers are asked to extend, and bad answers that keep it and add nothing.
//
// testdata/unseen has twelve conversations in eight languages. They are for measuring alone: whoever
// chooses a rule or a number of the gate writes conversations of their own, and does not read these.
package garbage
