package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core/config"
)

// A variable with a typing error is not ignored in silence.
func TestCheckEnvironment(t *testing.T) {
	t.Parallel()
	got := config.CheckEnvironment([]string{
		"HOME=/root", "BOBBIN_ADDR=:1", "BOBBIN_ADRR=:1", "BOBBIN_URL=http://a", "BOBBIN_KEY=k", "BOBBIN_CONFIG=x", "BOBBIN_TEST_LONG=1", "BOBBIN_QQQQQQQQQ=",
	})
	want := []string{
		"the environment variable BOBBIN_ADRR is no setting; did you mean BOBBIN_ADDR?",
		"the environment variable BOBBIN_QQQQQQQQQ is no setting; docs/CONFIGURATION.md lists them",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
