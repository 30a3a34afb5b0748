package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// CheckFiles returns a sentence for every breach of what files and packages keep
// to: a package comment, a telling name, a bounded length, no init function, and in
// tests no sleeping and no randomness but that of package seed. Sorted.
func CheckFiles(files []File) []string {
	var breaches []string
	for _, f := range files {
		breaches = append(breaches, checkFile(f)...)
	}
	packages := map[string][]File{}
	for _, f := range files {
		packages[f.Dir()] = append(packages[f.Dir()], f)
	}
	for dir, files := range packages {
		breaches = append(breaches, checkPackage(dir, files)...)
	}
	slices.Sort(breaches)
	return breaches
}

func checkFile(f File) []string {
	var breaches []string
	limit := maxLines
	if f.Test() {
		limit = maxTestLines
	}
	if f.Lines > limit && !f.Generated {
		breaches = append(breaches, fmt.Sprintf("%s has %d lines: the limit is %d; split it by subject", f.Name, f.Lines, limit))
	}
	if f.Inits > 0 && !f.Generated {
		breaches = append(breaches, fmt.Sprintf("%s has an init function: build the value in a New function and hand it on", f.Name))
	}
	if f.Test() && f.CallsSleep && !slices.Contains(f.Imports, "testing/synctest") {
		breaches = append(breaches, fmt.Sprintf("%s calls time.Sleep: wait for a signal, or run the test in testing/synctest", f.Name))
	}
	if f.InTests() && len(f.Draws) > 0 && !slices.Contains(drawers(), f.Dir()) {
		breaches = append(breaches, fmt.Sprintf("%s calls %s: take random numbers from package tests/seed, so that BOBBIN_TEST_SEED repeats them", f.Name, strings.Join(f.Draws, ", ")))
	}
	return breaches
}

func checkPackage(dir string, files []File) []string {
	var breaches []string
	name := strings.TrimSuffix(files[0].Package, "_test")
	if slices.Contains(emptyNames(), path.Base(dir)) || slices.Contains(emptyNames(), name) {
		breaches = append(breaches, fmt.Sprintf("%s is called %q, which says nothing: name the package after what it is for", dir, name))
	}
	if !slices.ContainsFunc(files, func(f File) bool { return commented(f, name) }) {
		breaches = append(breaches, fmt.Sprintf("%s has no package comment: say in a sentence %q what it is for", dir, "Package "+name+" …"))
	}
	return breaches
}

// commented reports whether the file holds the comment of the package. A command
// may begin as it likes; a package that is all test files may say "foo_test".
func commented(f File, name string) bool {
	if name == "main" {
		return f.Doc != ""
	}
	return strings.HasPrefix(f.Doc, "Package "+name+" ") || strings.HasPrefix(f.Doc, "Package "+name+"_test ")
}
