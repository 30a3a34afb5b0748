package contextwindow

// SummaryRoom returns how many cl100k_base tokens a summary may have that somebody
// writes by hand: what the policy allows for this model, or as many as the present
// one has.
func SummaryRoom(in Input) int {
	p := newPlanner(in)
	return max(p.r.back(p.b.SummaryLimit), in.Summary.Tokens)
}

// Edited returns the state after the words of the summary have been replaced: what
// was cut from the old ones is no measure for the new ones.
func (s PromptState) Edited() PromptState {
	s.SummaryCut = 0
	return s
}

// Resumed returns the state of a conversation that went back to an earlier summary,
// or to none: nothing of it is masked, shortened or left out. Notes on tool loops are
// summaries of their own and stay. As after a compaction, the share trigger waits for
// new material, for what has just been taken back would be done again at once
// otherwise (CONTEXT § 3, invariant 6).
func Resumed(in Input) PromptState {
	in.State = PromptState{Loops: in.State.Loops}
	p := newPlanner(in)
	p.place()
	seq := in.Summary.ThroughSeq
	for _, items := range [][]Item{in.History, in.Run} {
		if n := len(items); n > 0 {
			seq = items[n-1].Seq
		}
	}
	in.State.Landed = &Landing{Tokens: p.total, Seq: seq, Window: p.b.Window}
	return in.State
}
