package mcp

import (
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

func (s *Server) addMemoryTools(server *sdk.Server) {
	addTool(s, server, tool{
		name: "search_memories", title: "Search memories", scope: core.CanRead, answer: 2 * handlers.AnswerBytes,
		description: "Returns the memories (facts that somebody asked to keep) most similar to a text, the best first.",
	}, s.searchMemories)
	addTool(s, server, tool{
		name: "create_memory", title: "Keep a memory", scope: core.CanWrite, effect: adds,
		description: "Stores a fact to be found by search_memories. Write one fact in one sentence that is understood without the conversation.",
	}, s.createMemory)
	addTool(s, server, tool{
		name: "delete_memory", title: "Delete a memory", scope: core.CanWrite, effect: replaces,
		description: "Permanently deletes a memory.",
	}, s.deleteMemory)
}

type memoryItem struct {
	MemoryID  core.MemoryID `json:"memory_id"`
	Content   string        `json:"content"`
	UserID    string        `json:"user_id,omitempty"`
	Score     *float32      `json:"score,omitempty" jsonschema:"similarity, -1 to 1"`
	Notice    string        `json:"notice,omitempty" jsonschema:"why search does not find it yet"`
	CreatedAt time.Time     `json:"created_at"`
}

func memoryOf(m core.Memory) memoryItem {
	return memoryItem{MemoryID: m.ID, Content: core.Clip(m.Content, maxText), UserID: m.UserID, CreatedAt: m.CreatedAt}
}

// memorySearch is the arguments of search_memories.
type memorySearch struct {
	Query string `json:"query" jsonschema:"what the memories are about"`
	Limit int    `json:"limit,omitempty" min:"1" max:"50" jsonschema:"10 by default"`
}

type memoryList struct {
	Memories []memoryItem `json:"memories"`
	Matches  string       `json:"matches" jsonschema:"what is compared: words or meaning"`
}

func (s *Server) searchMemories(ctx context.Context, c call, in memorySearch) (memoryList, error) {
	found, err := s.Memories.Search(ctx, c.tenant, core.MemorySearch{Query: in.Query, Limit: in.Limit})
	if err != nil {
		return memoryList{}, err
	}
	out := memoryList{Memories: []memoryItem{}, Matches: found.Matches}
	for _, match := range found.Items {
		item := memoryOf(match.Memory)
		item.Score = &match.Score
		out.Memories = append(out.Memories, item)
	}
	return out, nil
}

type newMemory struct {
	Content string `json:"content" jsonschema:"the fact"`
}

func (s *Server) createMemory(ctx context.Context, c call, in newMemory) (memoryItem, error) {
	saved, err := s.Memories.Create(ctx, c.tenant, core.Memory{Content: in.Content})
	if err != nil {
		return memoryItem{}, err
	}
	item := memoryOf(saved.Memory)
	item.Notice = saved.Notice
	return item, nil
}

type memoryParam struct {
	MemoryID core.MemoryID `json:"memory_id"`
}

type deleted struct {
	Deleted bool `json:"deleted"`
}

func (s *Server) deleteMemory(ctx context.Context, c call, in memoryParam) (deleted, error) {
	if err := s.Memories.Store.Delete(ctx, c.tenant, in.MemoryID); err != nil {
		return deleted{}, err
	}
	return deleted{Deleted: true}, nil
}
