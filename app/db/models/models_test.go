package models_test

import (
	"strings"
	"testing"

	"bobbin/app/db/models"
)

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
