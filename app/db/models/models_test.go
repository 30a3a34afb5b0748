package models_test

import (
	"database/sql"
	"reflect"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm/schema"

	"bobbin/app/core"
	"bobbin/app/db/models"
	"bobbin/tests/must"
)

// A corrupted column is an error that names the column.
func TestSpoiledColumnsAreErrors(t *testing.T) {
	t.Parallel()
	models.RegisterSerializers()
	tests := map[string]struct {
		row   any
		value any
	}{
		"parts of a row of messages":      {new(core.Message), `{`},
		"tool_calls of a row of messages": {new(core.Message), `{}`},
		"run_id of a row of messages":     {new(core.Message), 1},
		"metadata of a row of messages":   {new(core.Message), 1},
		"input of a row of runs":          {new(models.Run), `[]`},
		"error of a row of runs":          {new(models.Run), `[]`},
		"embedding of a row of memories":  {new(core.Memory), []byte{1}},
	}
	for want, c := range tests {
		column, _, _ := strings.Cut(want, " ")
		f := must.Get(schema.Parse(c.row, &sync.Map{}, models.Names{}))(t).LookUpField(column)
		stored := f.NewValuePool.Get()
		must.Do(t, stored.(sql.Scanner).Scan(c.value))
		err := f.Set(t.Context(), reflect.ValueOf(c.row).Elem(), stored)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want an error that begins with %q", err, want)
		}
	}
}
