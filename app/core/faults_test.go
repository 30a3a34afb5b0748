package core_test

import (
	"errors"
	"strings"
	"testing"

	"bobbin/app/core"
)

func TestFaults(t *testing.T) {
	var f core.Faults
	if err := f.Err(); err != nil {
		t.Fatalf("no faults are the error %v", err)
	}
	if got := f.Text("title", "a\x00b", 5); got != core.CleanText("a\x00b") {
		t.Errorf("the text is stored as %q", got)
	}
	f.Text("title", "four", 3)
	f.Metadata([]byte(`[1]`), 10)
	f.Metadata([]byte(`{"a":"long enough"}`), 10)
	f.Metadata(nil, 10)
	err := f.Err()
	want := "title has 4 bytes, at most 3 are allowed; metadata must be a JSON object; metadata has 19 bytes, at most 10 are allowed"
	if !errors.Is(err, core.ErrInvalid) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestFaultsAreBounded(t *testing.T) {
	var f core.Faults
	for range 1000 {
		f.Add("x", "is wrong")
	}
	var e *core.Error
	if !errors.As(f.Err(), &e) || len(e.Fields) != 20 || strings.Count(e.Message, "is wrong") != 20 {
		t.Errorf("1000 faults are told as %d", len(e.Fields))
	}
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
