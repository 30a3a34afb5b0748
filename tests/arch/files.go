package arch

import (
	"fmt"
	"slices"
	"strings"
)

// CheckFiles returns a sentence for every test that sleeps, or draws random numbers that
// do not come from package seed. Sorted.
func CheckFiles(files []File) []string {
	var breaches []string
	for _, f := range files {
		if f.Test() && f.CallsSleep && !slices.Contains(f.Imports, "testing/synctest") {
			breaches = append(breaches, fmt.Sprintf("%s calls time.Sleep: wait for a signal, or run the test in testing/synctest", f.Name))
		}
		if f.InTests() && len(f.Draws) > 0 && !slices.Contains(drawers(), f.Dir()) {
			breaches = append(breaches, fmt.Sprintf("%s calls %s: take random numbers from package tests/seed, so that BOBBIN_TEST_SEED repeats them", f.Name, strings.Join(f.Draws, ", ")))
		}
	}
	slices.Sort(breaches)
	return breaches
}
