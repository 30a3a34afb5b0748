package core_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

func TestJSONSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ values, depth int }{
		`1`:                     {1, 0},
		`[]`:                    {2, 1},
		`{"a":1,"b":[2,3]}`:     {5, 2},
		`"[,{\"[,"`:             {1, 0},
		`["\\",["]"]]`:          {4, 2},
		`[[],[],[[]]]`:          {8, 3},
		` { "a\"," : null } `:   {2, 1},
		`]]]][`:                 {2, 0},
		`"` + `\`:               {1, 0},
		``:                      {1, 0},
		strings.Repeat("[", 99): {100, 99},
	} {
		if values, depth := core.JSONSize([]byte(text)); values != want.values || depth != want.depth {
			t.Errorf("%s: got %d values and %d levels, want %d and %d", text, values, depth, want.values, want.depth)
		}
	}
}

// No JSON text has more values or levels than are told.
func TestJSONSizeIsNoLess(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		v := value(t, 5)
		text, err := json.Marshal(v)
		must.True(t, err == nil, "marshal: %v", err)
		wantValues, wantDepth := sizeOf(v)
		if values, depth := core.JSONSize(text); values < wantValues || depth != wantDepth {
			t.Errorf("%s: got %d values and %d levels, want at least %d and just %d", text, values, depth, wantValues, wantDepth)
		}
	})
}

// value draws what JSON can say.
func value(t *rapid.T, levels int) any {
	switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
	case levels > 0 && kind == 0:
		return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) any { return value(t, levels-1) }), 0, 4).Draw(t, "list")
	case levels > 0 && kind == 1:
		return rapid.MapOfN(rapid.String(), rapid.Custom(func(t *rapid.T) any { return value(t, levels-1) }), 0, 4).Draw(t, "object")
	case kind == 2:
		return rapid.Float64Range(-1e9, 1e9).Draw(t, "number")
	default:
		return rapid.StringMatching(`[a-z"\\\[\]{},:]*`).Draw(t, "text")
	}
}

// sizeOf counts the values and levels of a value.
func sizeOf(v any) (values, depth int) {
	var inner []any
	switch v := v.(type) {
	case []any:
		inner = v
	case map[string]any:
		for _, member := range v {
			inner = append(inner, member)
		}
	default:
		return 1, 0
	}
	values = 1
	for _, member := range inner {
		n, d := sizeOf(member)
		values, depth = values+n, max(depth, d)
	}
	return values, depth + 1
}

func TestCheckJSON(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"small":       {`{"a":[1,2]}`, ""},
		"most levels": {strings.Repeat("[", 64) + strings.Repeat("]", 64), ""},
		"too deep":    {strings.Repeat("[", 65) + strings.Repeat("]", 65), "is nested more than 64 levels deep"},
		"most values": {"[" + strings.Repeat("1,", 997) + "1]", ""},
		"too many":    {"[" + strings.Repeat("{},", 600) + "{}]", "has more than 1000 values"},
	} {
		err := core.CheckJSON([]byte(tt.text), 1000)
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, core.ErrInvalid) || err.Error() != tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

func TestJSONSizeAllocatesNothing(t *testing.T) {
	text := []byte(strings.Repeat(`{"a":[1,"x"],`, 1000))
	compare.Equal(t, "allocations", 0, testing.AllocsPerRun(10, func() { core.JSONSize(text) }))
}

func TestFaults(t *testing.T) {
	var f core.Faults
	must.Do(t, f.Err())
	compare.Equal(t, "the text is stored as", core.CleanText("a\x00b"), f.Text("title", "a\x00b", 5))
	f.Text("title", "four", 3)
	f.Metadata([]byte(`[1]`), 10)
	f.Metadata([]byte(`{"a":"long enough"}`), 10)
	f.Metadata(nil, 10)
	err := f.Err()
	want := "title has 4 bytes, at most 3 are allowed; metadata must be a JSON object; metadata has 19 bytes, at most 10 are allowed"
	compare.True(t, errors.Is(err, core.ErrInvalid) && err.Error() == want, "got  %v\nwant %s", err, want)
}

func TestFaultsAreBounded(t *testing.T) {
	var f core.Faults
	for range 1000 {
		f.Add("x", "is wrong")
	}
	var e *core.Error
	compare.True(t, errors.As(f.Err(), &e) && len(e.Fields) == 20 && strings.Count(e.Message, "is wrong") == 20, "1000 faults are told as %d", len(e.Fields))
}

// Python's json module cannot read objects that are nested thousands of levels deep.
func TestFaultsMetadataDepth(t *testing.T) {
	nested := func(levels int) []byte {
		return []byte(strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels))
	}
	var f core.Faults
	f.Metadata(nested(core.MaxMetadataDepth), 16<<10)
	f.Metadata([]byte(`{"a":"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["}`), 16<<10)
	if err := f.Err(); err != nil {
		t.Errorf("got %v for metadata of %d levels, want none", err, core.MaxMetadataDepth)
	}
	f.Metadata(nested(core.MaxMetadataDepth+1), 16<<10)
	if got, want := f.Err(), "metadata is nested more than 32 levels deep"; got == nil || got.Error() != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
