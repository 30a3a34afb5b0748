package repositories_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// What a session has besides messages is counted where it is added, in a fork, and not any more where it is removed.
func TestStoredBytesBesidesMessages(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		branches, standing := repositories.NewBranches(s.Gorm), repositories.NewStandingInstructions(s.Gorm)
		id := s.session(t).ID
		m := s.append(t, id, false, core.Message{Role: core.RoleUser, Content: "hello", Source: core.SourceAPI}).Messages[0]
		call := core.Message{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "c", Name: "f", Arguments: strings.Repeat("x", 1000)}}, Source: core.SourceAPI}
		bytes := func() int64 { return s.get(t, id).StoredBytes }
		before := bytes()
		want := func(what string, want int64) {
			t.Helper()
			if compare.Equal(t, what, want, bytes()-before); t.Failed() {
				t.FailNow()
			}
			before = bytes()
		}
		added := must.Get(standing.Add(t.Context(), ann(), core.NewInstruction{SessionID: id, Text: strings.Repeat("s", 400)}))(t)
		want("an instruction", 512+400)
		must.Get(standing.Edit(t.Context(), ann(), added.ID, core.NewInstruction{SessionID: id, Text: strings.Repeat("s", 100)}))(t)
		want("a shorter one", -300)
		first, _ := core.NewPromptSetup(strings.Repeat("p", 3000), "", json.RawMessage(`[]`))
		for range 2 {
			must.Get2(s.sessions.ApplyContext(t.Context(), ann(), core.ContextChange{SessionID: id, Expect: s.get(t, id).PromptRevision, Setup: &first}))(t)
		}
		want("a setup, once", 512+3002)
		for i := range 16 {
			next, _ := core.NewPromptSetup(strings.Repeat("p", 100+i), "", json.RawMessage(`[]`))
			must.Get2(s.sessions.ApplyContext(t.Context(), ann(), core.ContextChange{SessionID: id, Expect: s.get(t, id).PromptRevision, Setup: &next}))(t)
		}
		want("16 others", 16*(512+102)+120-512-3002)
		summary := core.Summary{ID: core.NewID[core.SummaryID](), SessionID: id, Owner: "ann", Kind: core.SummaryRolling, Content: strings.Repeat("y", 2000), FromID: m.ID, ThroughID: m.ID, FromSeq: 1, ThroughSeq: 1, MessagesCovered: 1}
		must.Get2(s.sessions.ApplyContext(t.Context(), ann(), core.ContextChange{SessionID: id, Expect: s.get(t, id).PromptRevision, Summary: &summary}))(t)
		want("a summary", 512+2000)
		all := bytes()
		fork := must.Get(branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id}))(t)
		compare.Equal(t, "a fork", all, s.get(t, fork.ID).StoredBytes)
		must.Do(t, standing.Remove(t.Context(), ann(), id, added.ID))
		want("no instruction", -512-100)
		must.Get(branches.Delete(t.Context(), ann(), id, m.ID))(t)
		want("no message, and no summary of it", -2000-5)
		asked := ask(id, "x")
		asked.Options = &core.RunOptions{Instructions: strings.Repeat("o", 1000)}
		accepted := s.accept(t, asked)
		want("a run with options, and its message", 512+1+asked.Options.StoredBytes())
		of := accepted.Run
		s.write(t, core.RunWrite{RunID: of.ID, SessionID: id, Attempt: of.Attempt, Wait: &core.RunWait{Approvals: []core.Approval{{Kind: core.KindClientTool, ToolCallID: "c"}}}})
		given := core.AnswerCalls{SessionID: id, Results: []core.CallResult{{ToolCallID: "c"}}, Options: &core.RunOptions{Instructions: "o"}}
		was := asked.Options.StoredBytes()
		asked.Options = must.Get(s.runs.AnswerCalls(t.Context(), ann(), given))(t).Run.Options
		want("other options", asked.Options.StoredBytes()-was)
		s.finish(t, must.Get(s.runs.Claim(t.Context(), id, "w"))(t).Run, "y")
		want("an answer", 512+1)
		must.Get(branches.Delete(t.Context(), ann(), id, accepted.Message.ID))(t)
		want("no message, and no options of it", -1-asked.Options.StoredBytes())
		s.append(t, id, false, call)
		got := bytes() - before
		compare.True(t, got >= 512+1000, "a tool call: got %d bytes, want its arguments too", got)
	})
}

// A message that waits or was canceled counts as one in the log, and no count is negative.
func TestStoredBytesOfQueuedMessages(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		bytes := func() int64 { return s.get(t, id).StoredBytes }
		first := s.accept(t, ask(id, "first")).Run
		asked := ask(id, strings.Repeat("ä", 1000))
		asked.Input.Metadata, asked.Options = json.RawMessage(`{"b": 1, "a": 2}`), &core.RunOptions{Instructions: strings.Repeat("o", 1000)}
		size := 512 + 2000 + int64(len(`{"b":1,"a":2}`)) + asked.Options.StoredBytes()
		before, started, canceled := bytes(), s.accept(t, asked), s.accept(t, asked)
		compare.Equal(t, "two queued messages", before+2*size, bytes())
		must.Get2(s.runs.RequestCancel(t.Context(), ann(), canceled.Run.ID))(t)
		compare.Equal(t, "one canceled", before+2*size, bytes())
		s.exec(t, fmt.Sprintf("UPDATE sessions SET stored_bytes = %d", before-size))
		s.exec(t, string(must.Get(os.ReadFile("../../../migrations/"+s.Gorm.Name()+"/00121_run_bytes.sql"))(t))) // adds what earlier versions did not count
		got := bytes()
		compare.True(t, got >= before+size && got <= before+size+50, "migrated: got %d bytes, want %d", got, before+size)
		s.finish(t, first, "y")
		before = bytes() - 2*size
		must.Get(s.runs.Claim(t.Context(), id, "w"))(t)
		if got := bytes(); got < before+2*size || got > before+2*size+20 {
			t.Errorf("one has started: got %d bytes, want %d", got, before+2*size)
		}
		s.finish(t, must.Get(s.runs.Get(t.Context(), ann(), started.Run.ID))(t), "y")
		before = bytes()
		must.Get(repositories.NewBranches(s.Gorm).Delete(t.Context(), ann(), id, canceled.Message.ID))(t)
		compare.Equal(t, "the canceled one deleted", before-size, bytes())
		s.exec(t, "UPDATE sessions SET stored_bytes = 0")
		must.Get(repositories.NewBranches(s.Gorm).Delete(t.Context(), ann(), id, started.Message.ID))(t)
		compare.Equal(t, "the other deleted, of which nothing was counted", 0, bytes())
	})
}

// What is stored of a session is counted, whatever adds to it and removes from it.
func TestStoredBytes(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		branches := repositories.NewBranches(s.Gorm)
		eve := core.Tenant{Owner: "ann", User: "eve"}
		total := func() int64 {
			t.Helper()
			return must.Get(s.sessions.StoredBytes(t.Context(), eve))(t)
		}
		create := func() core.SessionID {
			t.Helper()
			session := must.Get(s.sessions.Create(t.Context(), core.Session{Owner: "ann", UserID: "eve", Agent: "assistant", Source: core.SourceAPI, Instructions: strings.Repeat("i", 100)}))(t)
			return session.ID
		}
		want := func(what string, id core.SessionID, texts, rows int) {
			t.Helper()
			if got, want := s.get(t, id).StoredBytes, int64(texts+512*rows); got < want || got > want+want/20 {
				t.Errorf("%s: got %d bytes, want %d", what, got, want)
			}
		}
		text := func(n int) core.Message {
			return core.Message{Role: core.RoleUser, Content: strings.Repeat("ä", n/2), Source: core.SourceAPI}
		}
		compare.Equal(t, "bytes without sessions", 0, total())
		id := create()
		compare.Equal(t, "bytes of an empty session: want 1124", 1024+100, total())
		first := s.append(t, id, false, text(1000), text(2000)).Messages[0]
		want("append", id, 3000, 2)
		var many []core.Message
		for range 300 {
			many = append(many, text(100))
		}
		s.append(t, id, true, many...)
		want("import in steps", id, 33_000, 302)
		fork := must.Get(branches.Fork(t.Context(), ann(), core.ForkSession{SessionID: id, MessageID: first.ID}))(t)
		want("fork", fork.ID, 1000, 1)
		must.Get2(branches.Revise(t.Context(), ann(), core.ReviseMessage{SessionID: id, MessageID: first.ID, Content: strings.Repeat("b", 500)}))(t)
		want("revise", id, 33_500, 302)
		patch := core.MessagePatch{Metadata: json.RawMessage(`{"x":"` + strings.Repeat("m", 2000) + `"}`)}
		must.Get2(branches.UpdateMessage(t.Context(), ann(), fork.ID, s.log(t, fork.ID)[0].ID, patch))(t)
		want("metadata", fork.ID, 3000, 1)
		forkMessage := s.log(t, fork.ID)[0]
		must.Get2(branches.UpdateMessage(t.Context(), ann(), fork.ID, forkMessage.ID, core.MessagePatch{Feedback: &core.Feedback{Rating: core.RatingUp, Comment: strings.Repeat("f", 2000)}}))(t)
		want("feedback", fork.ID, 5000, 1)
		must.Get2(branches.UpdateMessage(t.Context(), ann(), fork.ID, forkMessage.ID, core.MessagePatch{Feedback: &core.Feedback{}}))(t)
		want("no feedback", fork.ID, 3000, 1)
		if got, most := total(), int64(2000+2*1124+33_500+1000+303*512); got < most || got > most+most/20 {
			t.Errorf("got %d bytes of two sessions, want %d", got, most)
		}
		before := total()
		must.Get(repositories.NewMemories(s.Gorm).Create(t.Context(), core.Memory{Owner: "ann", UserID: "eve", Content: strings.Repeat("c", 700), Embedding: make([]float32, 100), EmbeddingModel: "m"}))(t)
		compare.Equal(t, "bytes of a memory", 512+700+400, total()-before)
		must.Get(branches.Delete(t.Context(), ann(), id, first.ID))(t)
		want("delete", id, 32_000, 302)
		must.Get(repositories.NewPurges(s.Gorm).Session(t.Context(), id, false))(t)
		got := total()
		compare.True(t, got <= 1124+3000+512+100+512+700+400, "got %d bytes after the purge, want those of the fork", got)
	})
}
