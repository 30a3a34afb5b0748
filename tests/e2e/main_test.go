package e2e_test

import (
	"testing"

	"bobbin/tests/apptest"
)

func TestMain(m *testing.M) { apptest.Main(m) }
