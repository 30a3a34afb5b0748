package mutants_test

// mutant is one small fault.
type mutant struct {
	name string // what is wrong with it
	test string // that must fail
	file string // of the package
	old  string // found exactly once there
	new  string
}

// invariants are a mutant and more for each invariant of the package.
func invariants() []mutant {
	return []mutant{
		{
			"1: the answer's reserve is given to the prompt", "TestInvariant1NeverLargerThanUsable", "plan.go",
			"p.limit = p.budget.Usable", "p.limit = p.budget.Window",
		},
		{
			"1: a masked result costs nothing", "TestInvariant1NeverLargerThanUsable", "plan.go",
			"core.PlaceMasked, p.scale.toModel(maskTokens)", "core.PlaceMasked, 0",
		},
		{
			"2: nothing says what is left out", "TestInvariant2EveryMessageInOnePlace", "prompt.go",
			"if n == 0 {", "if n >= 0 {",
		},
		{
			"3: the cursor goes one message too far", "TestInvariant3CursorOnlyForwardAndOnlyOverWhatWasRead", "ladder.go",
			"ThroughSeq: last.Seq,", "ThroughSeq: last.Seq + 1,",
		},
		{
			"4: a result without its call is sent as one", "TestInvariant4NoCallWithoutResult", "plan.go",
			"orphans[it.ID] = true", "orphans[it.ID] = false",
		},
		{
			"4: results in the order in which they came", "TestInvariant4NoCallWithoutResult", "render.go",
			"return s.CallID == call && !s.Orphan", "return !s.Orphan",
		},
		{
			"5: the user's message is shortened with the others", "TestInvariant5LatestUserMessage", "fit.go",
			"p.shortenSlots(p.run[1:], low)", "p.shortenSlots(p.run, low)",
		},
		{
			"6: where a compaction landed is forgotten", "TestInvariant6LandsAndStaysQuiet", "trigger.go",
			"t = max(t, l.Tokens+shareOf(resetShare, p.budget.Trigger))", "t = max(t, 0)",
		},
		{
			"7: old results are masked without being decided", "TestInvariant7PrefixIsStable", "plan.go",
			"it.Role == core.RoleTool && it.Seq <= p.state.MaskedThrough",
			"it.Role == core.RoleTool && (it.Seq <= p.state.MaskedThrough || len(p.in.Run) > 0 && it.Seq < p.in.Run[0].Seq)",
		},
		{
			"8: whether a policy summarizes is not asked", "TestInvariant8OffNeverSummarizes", "ladder.go",
			"return policy.AutoSummarize && hasTrigger && (", "return (hasTrigger || true) && (",
		},
		{
			"9: nobody speaks before the assistant", "TestInvariant9FirstMessageIsTheUsers", "prompt.go",
			"len(p.Messages) > 0 && p.Messages[0].Role", "len(p.Messages) < 0 && p.Messages[0].Role",
		},
		{
			"10: the share trigger fires at half", "TestInvariant10UnderTheTriggerNothingChanges", "trigger.go",
			"add(triggerShare, size, threshold,", "add(triggerShare, size, threshold/2,",
		},
		{
			"10: a shortening without need", "TestInvariant10UnderTheTriggerNothingChanges", "prompt.go",
			"Content: m.Shown(p.parts.ReadsResults), Parts", "Content: core.Clip(m.Shown(p.parts.ReadsResults), 5_000), Parts",
		},
		{
			"11: what the prompt has is quoted", "TestInvariant11RecalledPassagesTakeNothing", "quotes.go",
			"quoted[c.ID] || !p.isHidden(c.Seq)", "quoted[c.ID]",
		},
		{
			"11: passages beyond their share", "TestInvariant11RecalledPassagesTakeNothing", "quotes.go",
			"min(p.budget.Recall, p.limit-p.total)", "p.limit - p.total",
		},
		{
			"12: what the prompt shows is listed", "TestInvariant12StandingInstructionsStay", "standing.go",
			"hasEnded || !i.ByHand && showsWhole(p.slots, i.Seq) {", "hasEnded {",
		},
		{
			"12: a change takes effect before its message leaves the prompt", "TestReplacedInstructionStaysUntilBothAreGone", "standing.go",
			"hasEnded := i.EndSeq > 0 && !showsWhole(p.slots, i.EndSeq)", "hasEnded := i.EndSeq > 0",
		},
		{
			"12: instructions beyond their share", "TestStandingInstructionsAreBounded", "standing.go",
			"p.scale.toModel(size+i.Tokens+lineEnd) <= p.standingRoom()", "p.scale.toModel(size+i.Tokens+lineEnd) <= p.limit",
		},
	}
}

// rungs are a mutant and more for each rung of the ladder that is the plan's.
func rungs() []mutant {
	return []mutant{
		{"rung 0: passages of earlier messages cost nothing", "TestQuotesGiveWay", "quotes.go", "s.Size += p.scale.toModel(quotes.Tokens)", "s.Size += 0"},
		{"rung 0: they stay without their thoughts", "TestQuotesGiveWay", "quotes.go", "if hasThoughts && s.Place == core.PlaceVerbatim {", "if s.Place == core.PlaceVerbatim {"},
		{"rung 1: masked for any gain", "TestRung1MasksOldToolResults", "ladder.go", "const minMaskGain = 0.2", "const minMaskGain = 0.1"},
		{"rung 1: the newest result is masked", "TestRung1MasksOldToolResults", "ladder.go", "p.maskThrough(s.Seq - 1)", "p.maskThrough(p.history[len(p.history)-1].Seq)"},
		{"rung 2: a turn is split", "TestForce", "ladder.go", "if i > 0 && it.Role == core.RoleUser {", "if i > 0 && it.Role != core.RoleTool {"},
		{"rung 2: a turn fewer is kept", "TestSlidingKeepsTen", "ladder.go", "deeper(p.cutKeeping(p.in.Policy.MinRecent), 2)", "deeper(p.cutKeeping(p.in.Policy.MinRecent-2), 2)"},
		{"rung 2: the summary's own size is forgotten", "TestRung2Summarizes", "ladder.go", "p.total-p.summarySize()+p.budget.SummaryLimit+p.scale.toModel(summaryWrap), p", "p.total-p.summarySize(), p"},
		{"rung 3: does not say that it is one", "TestRung3BelowKeepAtLeast", "ladder.go", "	if rung == 3 {", "	if rung > 3 {"},
		{"rung 4: a summary may fill the prompt", "TestRung4CutsASummaryOverItsShare", "ladder.go", "p.cutSummary(p.budget.SummaryLimit)", "p.cutSummary(p.limit)"},
		{"rung 4: a cut outlives its summary", "TestRung4CutsASummaryOverItsShare", "plan.go", "s.SummaryCut = 0 // it was for the previous summary", ""},
		{"rung 6: the head of a message only", "TestRung6ShortensTheUsersMessage", "render.go", "const headShare = 2.0 / 3", "const headShare = 1.0"},
		{"rung 7: the newest of the tail go too", "TestRung7LeavesOutTheOldest", "fit.go", "if smallest <= target {", "if smallest <= 0 {"},
		{"rung 7: a run's rounds go one by one", "TestRung7LeavesOutOldRounds", "fit.go", "if smallest <= target {", "if smallest <= p.limit {"},
		{"rung 8: a refused prompt changes the state", "TestRung8NamesTheCulprit", "ladder.go", "		p.refusePrompt()\n		return\n", "		p.refusePrompt()\n"},
		{"B1: N + 1 messages", "TestTriggersSinceTheCursor", "trigger.go", "trigger{messages: true, missing: missing}", "trigger{messages: true, missing: missing, above: true}"},
		{"B5: below min_recent_messages + 4", "TestTriggersSinceTheCursor", "trigger.go", "missing := max(policy.NeverBelow-count, 0)", "missing := 0"},
		{"R3: auto_summarize stops it", "TestTriggersSinceTheCursor", "ladder.go", "if p.in.Force || f.of[triggerUnsummarized] {", "if p.in.Force {"},
		{"L2: one round fewer stays", "TestLoopOverRandomConversations", "loop.go", "cut := r.starts[len(r.starts)-l.KeepRecent]", "cut := r.starts[len(r.starts)-1]"},
		{"L2: the rounds that stayed count again", "TestLoopEveryEighthIteration", "loop.go", "since = max(since-l.KeepRecent, 0)", "since = max(since, 0)"},
		{"L2: a range goes on behind a gap", "TestLoopEndsWhereTheRoundsDo", "loop.go", "return i == 1 || p.run[i].Seq == p.run[i-1].Seq+1", "return i > 0"},
		{"L2: a larger window brings the long version back", "TestLoopInTheNextTurns", "plan.go", "s = PromptState{Loops: s.Loops}", "s = PromptState{}"},
		{"L5: the fence of notes can be closed", "TestLoopNotesInThePrompt", "loop.go", "fenceSafe(text, p.count)", "text"},
		{"1: notes cost nothing", "TestInvariant1NeverLargerThanUsable", "loop.go", "s.Size = p.scale.toModel(limit)", "s.Size = 0"},
		{"W5: at the trigger", "TestShareTriggerToTheToken", "trigger.go", "trigger{above: true, prepare", "trigger{prepare"},
		{"fence: it can be closed", "TestSummaryAsUserMessage", "prompt.go", "\n\tsafe := prompttext.Harmless(text)", "\n\tsafe := strings.ReplaceAll(prompttext.Harmless(\"\")+text, \"</conversation_summary>\", \"\")"},
		{"row 15: a smaller window's cuts stay", "TestRow15SwitchToASmallerWindow", "plan.go", "s.Landed.Window < in.Model.Window", "s.Landed.Window < 0"},
	}
}

// timings are mutants of when summaries are made.
func timings() []mutant {
	return []mutant{
		{"W5: summarized near the trigger", "TestPreparedNearTheTrigger", "timing.go", "		p.decision.Prepare = order\n	}\n	return false\n}", "		p.decision.Summarize = order\n	}\n	return false\n}"},
		{"timing: prepared at the trigger only", "TestPreparedNearTheTrigger", "trigger.go", "point := max(shareOf(nearShare, t), ", "point := max(t, "},
		{"timing: what is prepared is for the present prompt", "TestPreparedLandsWhenTheTriggerIsCrossed", "timing.go", "q.ahead.prompt = max(p.shareThreshold()-p.total, 0)", "q.ahead.prompt = 0"},
		{"timing: fewer than keep-at-least are left ahead", "TestWhatIsPrepared", "ladder.go", "if r == 3 && p.ahead.early {", "if r == 3 && !p.ahead.early {"},
		{"timing: a prompt that fits waits", "TestNobodyWaitsForWhatFits", "timing.go", "return timing != TimingBackground", "return true"},
		{"timing: a second one while one is made", "TestTimings", "timing.go", "		case p.in.Busy:\n			p.addReason", "		case false:\n			p.addReason"},
		{"timing: an activation that brings nothing", "TestActivationThatBringsNothing", "timing.go", "case with >= p.total:", "case with < 0:"},
		{"R4: a run waits in its middle", "TestAfterRunCatchesUp", "timing.go", "f.bySince() && len(p.in.Run) <= 1", "f.bySince()"},
		{"row 24: a model that rests is asked", "TestTimings", "timing.go", "	case p.in.Resting:\n		return false", "	case p.in.Resting:\n		return true"},
	}
}
