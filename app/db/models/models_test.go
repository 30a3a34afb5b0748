package models_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/models"
	"bobbin/tests/dbtest"
)

// W11: memories are stored, though no node of the graph uses them.
func TestMemoryKeepsItsEmbedding(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		now := core.Now()
		for _, want := range []core.Memory{
			{ID: core.NewID[core.MemoryID](), Owner: "ann", Content: "likes tea", Embedding: []float32{0, -1.5, 3.4028235e38, 1e-45},
				EmbeddingModel: "e", Dimension: 4, Revision: 3, Metadata: json.RawMessage(`{}`), CreatedAt: now, UpdatedAt: now},
			{ID: core.NewID[core.MemoryID](), Owner: "ann", Content: "no embedding", CreatedAt: now, UpdatedAt: now},
		} {
			row := models.MemoryFrom(want)
			if err := d.Gorm.WithContext(t.Context()).Create(&row).Error; err != nil {
				t.Fatal(err)
			}
			var stored models.Memory
			if err := d.Gorm.WithContext(t.Context()).Take(&stored, "id = ?", want.ID).Error; err != nil {
				t.Fatal(err)
			}
			got, err := stored.Core()
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("memory (-want +got): %v\n%s", err, diff)
			}
		}
	})
}

func TestModelCallIsTheSameAfterwards(t *testing.T) {
	t.Parallel()
	want := core.ModelCall{
		ID: core.NewID[string](), Owner: "ann", User: "carol", SessionID: core.NewID[core.SessionID](), RunID: core.NewID[core.RunID](),
		Agent: "a", Purpose: core.PurposeAnswer, Model: "m", Provider: "p", Estimated: 7, Usage: core.Usage{InputTokens: 1, CacheWriteTokens: 5},
		FinishReason: core.FinishStop, Error: "timeout", Duration: 3, CreatedAt: core.Now(),
	}
	if diff := cmp.Diff(want, models.ModelCallFrom(want).Core()); diff != "" {
		t.Errorf("model call (-want +got):\n%s", diff)
	}
}

// A corrupted column is an error that names the row.
func TestSpoiledColumnsAreErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]func() error{
		"parts of message x":      func() error { _, err := models.Message{ID: "x", Parts: models.JSON(`{`)}.Core(); return err },
		"tool calls of message x": func() error { _, err := models.Message{ID: "x", ToolCalls: models.JSON(`{}`)}.Core(); return err },
		"input of run x":          func() error { _, err := models.Run{ID: "x", Input: models.JSON(`[]`)}.Core(); return err },
		"error of run x":          func() error { _, err := models.Run{ID: "x", Error: models.JSON(`[]`)}.Core(); return err },
		"embedding of memory x":   func() error { _, err := models.Memory{ID: "x", Embedding: []byte{1}}.Core(); return err },
	}
	for want, f := range tests {
		if err := f(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want an error that begins with %q", err, want)
		}
	}
	if err := new(models.JSON).Scan(1); err == nil {
		t.Error("JSON of a number: got no error")
	}
	if err := new(models.Ref).Scan(1); err == nil {
		t.Error("id of a number: got no error")
	}
}
