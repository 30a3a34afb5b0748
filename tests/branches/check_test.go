package branches_test

import (
	"reflect"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/must"
)

func newTalk(id core.SessionID) *talk {
	return &talk{id: id, known: map[core.MessageID]core.Message{}, deleted: map[core.MessageID]bool{}, pinned: map[core.MessageID]bool{}}
}

// fault notes a broken promise.
func (w *world) fault(format string, args ...any) {
	w.t.Helper()
	w.violations++
	w.t.Errorf(format+"\nafter %v", append(args, w.trace)...)
}

// learn remembers rows that are new, and compares the others.
func (w *world) learn(k *talk) []core.Message {
	w.t.Helper()
	rows := w.rows(k.id)
	clear(k.pinned)
	for i, m := range rows {
		id := m.ID
		k.pinned[id] = m.Pinned
		was, ok := k.known[id]
		if !ok {
			k.known[id], was = m, m
		}
		if m.Seq != int64(i+1) {
			w.fault("got seq %d, want %d", m.Seq, i+1)
		}
		if m.ParentID != was.ParentID || m.Role != was.Role || m.RunID != was.RunID || m.Seq != was.Seq {
			w.fault("message #%d moved: %+v, was %+v", m.Seq, m, was)
		}
		if gone := m.DeletedAt != nil; gone != k.deleted[id] {
			w.fault("message #%d: deleted %v, want %v", m.Seq, gone, k.deleted[id])
		} else if gone && len(m.Content)+len(m.ToolCalls)+len(m.Parts)+len(m.Metadata) > 0 {
			w.fault("message #%d was deleted and says %q", m.Seq, m.Content)
		} else if !gone && (m.Content != was.Content || !reflect.DeepEqual(m.ToolCalls, was.ToolCalls)) {
			w.fault("message #%d lost its content", m.Seq)
		}
	}
	if len(rows) != len(k.known) {
		w.fault("got %d messages, want %d: something is lost", len(rows), len(k.known))
	}
	return rows
}

// check looks at a session after a step.
func (w *world) check(k *talk, step string) {
	w.t.Helper()
	rows := w.learn(k)
	w.checkPath(k, rows)
	s := w.session(k.id)
	w.checkSummary(k, s, step)
	w.checkPlan(k, s)
	w.checkEvents(k, s)
	w.checkErased(k)
	k.through = s.SummaryThroughSeq
}

// checkPath wants the current path to be the expected one, from a root, without a
// gap.
func (w *world) checkPath(k *talk, rows []core.Message) {
	w.t.Helper()
	var got []core.MessageID
	var last core.MessageID
	for _, m := range rows {
		if !m.OnPath {
			continue
		}
		if m.ParentID != last {
			w.fault("message #%d on the path has another parent than the one before it", m.Seq)
		}
		got, last = append(got, m.ID), m.ID
	}
	if !slices.Equal(got, k.path) {
		w.fault("got a path of %d messages, want %d", len(got), len(k.path))
		k.path = got
	}
}

// checkSummary wants the summary to say what is covered, and nothing else: nothing
// that is off the path, deleted, or after its end.
func (w *world) checkSummary(k *talk, s core.Session, step string) {
	w.t.Helper()
	var versions []core.Summary
	must.Do(w.t, w.db.Gorm.WithContext(w.t.Context()).Where("session_id = ?", k.id).Order("version").Find(&versions).Error)
	active := 0
	for i, v := range versions {
		if v.Version != i+1 {
			w.fault("got summary version %d, want %d", v.Version, i+1)
		}
		if strings.HasPrefix(v.Note, "fallback") {
			k.partial = true
		}
		if v.Kind == "run" {
			continue
		}
		if v.State == "active" {
			active++
			if v.Version != s.SummaryVersion || s.ConversationSummary == nil || *s.ConversationSummary != v.Content {
				w.fault("version %d is active, the session has %d", v.Version, s.SummaryVersion)
			}
		}
	}
	w.checkLoops(k, s, versions)
	if active != min(s.SummaryVersion, 1) {
		w.fault("got %d active versions, the session has version %d", active, s.SummaryVersion)
	}
	back := map[string]bool{"edit": true, "after": true, "regenerate": true, "select": true, "delete": true, "revise": true, "interrupt": true}[step]
	if !back && s.SummaryThroughSeq < k.through {
		w.fault("%s moved the cursor from %d back to %d", step, k.through, s.SummaryThroughSeq)
	}
	var required, may []string
	for _, id := range k.path {
		m := k.known[id]
		if m.Seq <= s.SummaryThroughSeq && !k.deleted[id] {
			required = append(required, marksOf(m)...)
			may = append(may, string(id))
		}
	}
	if s.SummaryVersion == 0 {
		return
	}
	if s.SummaryThroughID == nil || !slices.Contains(k.path, *s.SummaryThroughID) || k.deleted[*s.SummaryThroughID] {
		w.fault("the summary ends with %v, which is not on the path", s.SummaryThroughID)
	}
	if len(may) != s.SummarizedCount {
		w.fault("got %d messages summarized, %d are on the path up to the cursor", s.SummarizedCount, len(may))
	}
	said := mark.FindAllString(*s.ConversationSummary, -1)
	for _, found := range said {
		if !slices.Contains(required, found) {
			w.fault("the summary says %s, which is not covered", found)
		}
	}
	for _, m := range required {
		if !k.partial && !slices.Contains(said, m) {
			w.fault("%s is covered and not in the summary", m)
		}
	}
}

// checkLoops wants the notes in use to be those that the prompt state names, on messages
// of the path behind the cursor that are all there, and to say nothing else than those
// and the question before them.
func (w *world) checkLoops(k *talk, s core.Session, versions []core.Summary) {
	w.t.Helper()
	state := must.Get(contextwindow.DecodeState(s.PromptState))(w.t)
	active := 0
	for _, v := range versions {
		if v.Kind != "run" || v.State != "active" {
			continue
		}
		active++
		if !slices.ContainsFunc(state.Loops, func(r contextwindow.LoopRange) bool {
			return r.ID == v.ID && r.From == v.FromSeq && r.Through == v.ThroughSeq && r.Tokens == v.TokenCount
		}) {
			w.fault("notes on #%d to #%d are active and not in the prompt state %+v", v.FromSeq, v.ThroughSeq, state.Loops)
		}
		covered, may := 0, map[string]bool{}
		for _, id := range k.path {
			m := k.known[id]
			inside := v.FromSeq <= m.Seq && m.Seq <= v.ThroughSeq
			if k.deleted[id] || !inside && m.ID != k.known[v.FromID].ParentID {
				continue
			}
			if inside {
				covered++
			}
			for _, found := range marksOf(m) {
				may[found] = true
			}
		}
		if covered != int(v.ThroughSeq-v.FromSeq+1) || v.FromSeq <= s.SummaryThroughSeq {
			w.fault("notes on #%d to #%d: %d of these messages are on the path, the cursor is #%d", v.FromSeq, v.ThroughSeq, covered, s.SummaryThroughSeq)
		}
		for _, found := range mark.FindAllString(v.Content, -1) {
			if !may[found] {
				w.fault("the notes on #%d to #%d say %s, which is not of them", v.FromSeq, v.ThroughSeq, found)
			}
		}
	}
	if active != len(state.Loops) {
		w.fault("%d notes are active, the prompt state names %d", active, len(state.Loops))
	}
}

// checkPlan wants every message of the path in one place of the next prompt, and
// nothing else in it.
func (w *world) checkPlan(k *talk, s core.Session) {
	w.t.Helper()
	report, err := w.inspector.Report(w.t.Context(), tenant, k.id)
	if err != nil {
		w.fault("report: %v", err)
		return
	}
	view, err := w.inspector.Prompt(w.t.Context(), tenant, k.id, core.PlanPreview{})
	if err != nil {
		w.fault("prompt: %v", err)
		return
	}
	c := report.Coverage
	alive := len(k.path)
	for _, id := range k.path {
		if k.deleted[id] {
			alive--
		}
	}
	if sum := c.Summarized + c.Compacted + c.Verbatim + c.Masked + c.Shortened + c.LeftOut; c.Lost != 0 || sum != alive || c.Excluded != len(k.known)-alive || c.Messages != len(k.known) {
		w.fault("coverage %+v of %d messages, %d in the conversation", c, len(k.known), alive)
	}
	w.checkPrompt(k, request(view))
	shown := map[core.MessageID]core.PromptMessage{}
	for _, m := range view.Messages {
		if m.MessageID != "" {
			shown[m.MessageID] = m
		}
	}
	notShown, covered := 0, 0
	for _, id := range k.path {
		m := k.known[id]
		if k.deleted[id] {
			continue
		}
		if m.Seq <= s.SummaryThroughSeq {
			covered++
			continue
		}
		got, ok := shown[id]
		switch {
		case !ok:
			notShown++
		case got.Placement == core.PlaceVerbatim && !strings.HasSuffix(got.Content, m.Content):
			w.fault("message #%d is called verbatim and is %.40q", m.Seq, got.Content)
		case got.Placement != core.PlaceVerbatim && len(m.ToolCalls) == 0 && !strings.Contains(got.Content, string(id)):
			w.fault("message #%d is %s, and nothing says so", m.Seq, got.Placement)
		}
	}
	next := c.Summarized - covered // that the summary will cover which the next message makes first
	if notShown != c.LeftOut+c.Compacted+next {
		w.fault("%d messages are not shown, %d are called left out, %d told by notes and %d about to be summarized", notShown, c.LeftOut, c.Compacted, next)
	}
	if report.WillTrigger || report.Used <= report.Usable {
		return
	}
	w.fault("the next prompt has %d tokens, usable are %d", report.Used, report.Usable)
}

func request(view core.PromptView) llm.Request {
	req := llm.Request{System: view.System}
	for _, m := range view.Messages {
		req.Messages = append(req.Messages, llm.Message{Role: m.Role, Content: m.Content, ToolCalls: m.ToolCalls, ToolCallID: m.ToolCallID})
	}
	return req
}

// checkRequest looks at a prompt that is sent, and may be so large.
func (w *world) checkRequest(req llm.Request, usable int) {
	w.t.Helper()
	k := w.asked
	for _, m := range w.rows(k.id) {
		if _, ok := k.known[m.ID]; !ok {
			k.known[m.ID] = m
		}
		if m.OnPath && !slices.Contains(k.path, m.ID) {
			k.path = append(k.path, m.ID)
		}
	}
	w.checkPrompt(k, req)
	size := contextwindow.ListOverhead + w.counter.Tools(req.Tools)
	for _, b := range req.System {
		size += w.counter.Text(b) + 4
	}
	for _, m := range req.Messages {
		size += w.counter.Message(core.Message{Role: m.Role, Content: m.Content, ToolCalls: m.ToolCalls})
	}
	if size > usable {
		w.fault("a prompt of %d tokens was sent, usable are %d", size, usable)
	}
	want, latest := strings.Join(marksOf(k.known[k.question]), " "), ""
	for _, m := range req.Messages {
		// In the last iteration results are messages of the user, perhaps joined with the question.
		results := strings.HasPrefix(m.Content, "[result of ") && !strings.Contains(m.Content, want)
		if m.Role == core.RoleUser && !strings.HasPrefix(m.Content, contextwindow.NotesTitle) && !results {
			latest = m.Content
		}
	}
	if want == "" || !strings.Contains(latest, want) {
		w.fault("the latest question is %.20q, want %s", latest, want)
	}
}

// checkPrompt wants nothing in a prompt but what is on the path, calls with their
// results, and a user's message first.
func (w *world) checkPrompt(k *talk, req llm.Request) {
	w.t.Helper()
	text := strings.Join(req.System, "\n")
	var open []string
	for i, m := range req.Messages {
		text += "\n" + m.Content
		if i == 0 && m.Role != core.RoleUser {
			w.fault("the first message is from %s", m.Role)
		}
		if m.Role == core.RoleTool {
			if len(open) == 0 || open[0] != m.ToolCallID {
				w.fault("a result of %q, open are %q", m.ToolCallID, open)
				return
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			w.fault("calls %q have no result", open)
		}
		open = nil
		for _, c := range m.ToolCalls {
			open = append(open, c.ID)
			text += c.Arguments
		}
	}
	found := map[string]bool{}
	for _, m := range mark.FindAllString(text, -1) {
		found[m] = true
	}
	for _, id := range k.path {
		m := k.known[id]
		if k.deleted[id] {
			continue
		}
		seen := true
		for _, mark := range marksOf(m) {
			seen = seen && found[mark]
			delete(found, mark)
		}
		if k.pinned[id] && len(m.ToolCalls) == 0 && !seen { // calls are quoted without their arguments
			w.fault("message #%d is pinned and not in the prompt", m.Seq)
		}
	}
	for m := range found {
		w.fault("%s is in the prompt and not in the conversation", m)
	}
}

// checkEvents wants the numbers without a gap.
func (w *world) checkEvents(k *talk, s core.Session) {
	w.t.Helper()
	var n struct{ Count, Last int64 }
	err := w.db.Gorm.WithContext(w.t.Context()).Raw("SELECT COUNT(*) AS count, COALESCE(MAX(event_seq), 0) AS last FROM session_events WHERE session_id = ?", k.id).Scan(&n).Error
	if err != nil || n.Count != n.Last || n.Last != s.LastEventSeq || s.LastSeq != int64(len(k.known)) || s.MessageCount != len(k.known) {
		w.fault("got %d events up to %d, session %d; last seq %d, %v", n.Count, n.Last, s.LastEventSeq, s.LastSeq, err)
	}
}

// checkErased looks for what was deleted or replaced in every text of the session.
func (w *world) checkErased(k *talk) {
	w.t.Helper()
	if len(k.deleted)+len(k.replaced) == 0 {
		return
	}
	gone := map[string]bool{}
	for _, old := range k.replaced {
		for _, m := range marksOf(old) {
			gone[m] = true
		}
	}
	for id := range k.deleted {
		for _, m := range marksOf(k.known[id]) {
			gone[m] = true
		}
	}
	for table, query := range map[string]string{
		"messages":          "SELECT content || COALESCE(CAST(tool_calls AS text), '') FROM messages WHERE session_id = ?",
		"session_events":    "SELECT CAST(data AS text) FROM session_events WHERE session_id = ?",
		"session_summaries": "SELECT content || focus FROM session_summaries WHERE session_id = ?",
		"sessions":          "SELECT COALESCE(conversation_summary, '') FROM sessions WHERE id = ?",
		"runs":              "SELECT CAST(input AS text) || partial FROM runs WHERE session_id = ?",
	} {
		var texts []string
		must.Do(w.t, w.db.Gorm.WithContext(w.t.Context()).Raw(query, k.id).Scan(&texts).Error)
		for _, found := range mark.FindAllString(strings.Join(texts, "\n"), -1) {
			if gone[found] {
				w.fault("%s of a deleted or edited message is still in %s", found, table)
			}
		}
	}
}
