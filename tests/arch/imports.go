package arch

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// CheckImports returns a sentence for every import that the tables of rules.go
// do not allow, sorted.
func CheckImports(files []File) []string {
	var breaches []string
	for _, f := range files {
		for _, imported := range f.Imports {
			if sentence := checkImport(f, imported); sentence != "" {
				breaches = append(breaches, fmt.Sprintf("%s (in %s)", sentence, f.Name))
			}
		}
	}
	slices.Sort(breaches)
	return slices.Compact(breaches)
}

// checkImport returns what is wrong with one import, or "".
func checkImport(f File, imported string) string {
	from := f.Dir()
	home, known := partOf(from)
	if from == "." {
		from = "main"
	}
	switch {
	case !known:
		return fmt.Sprintf("%s is no part of the house: give it a row in tests/arch/rules.go, or put the code into the part that it belongs to", from)
	case f.Test():
		return checkTest(home, from, imported)
	case own(imported):
		return checkOwn(home, from, imported)
	case standard(imported):
		return ""
	default:
		return checkForeign(home, from, imported)
	}
}

// checkTest judges the import of a test file.
func checkTest(home part, from, imported string) string {
	if home.dir != "app/core" || !own(imported) || within(imported, "app/core") || slices.Contains(coreHelpers(), imported) {
		return ""
	}
	return fmt.Sprintf("a test of %s imports %s: core is tested by itself; a test of several parts belongs in tests/integration", from, imported)
}

// checkOwn judges the import of one of our own packages.
func checkOwn(home part, from, imported string) string {
	target, known := partOf(imported)
	switch {
	case !known:
		return fmt.Sprintf("%s imports %s, which is no part of the house: give it a row in tests/arch/rules.go", from, imported)
	case target.dir == home.dir:
		return checkInner(home, from, imported)
	case target.dir == "tests":
		return fmt.Sprintf("%s imports %s: nothing imports the tests; move what is needed into the part", from, imported)
	case slices.Contains(home.may, anything) || slices.Contains(home.may, target.dir):
		return ""
	default:
		return fmt.Sprintf("%s imports %s: %s may import only %s; give it an interface and let wire join them",
			from, imported, short(home.dir), list(home.may))
	}
}

// checkInner judges an import inside a part.
func checkInner(home part, from, imported string) string {
	rule, found := innerOf(from)
	if !found || slices.Contains(rule.may, imported) {
		return ""
	}
	return fmt.Sprintf("%s imports %s: inside %s, %s may import only %s; the arrow may not turn round", from, imported, short(home.dir), short(from), list(rule.may))
}

// checkForeign judges the import of a library.
func checkForeign(home part, from, imported string) string {
	for _, lib := range libraries() {
		switch {
		case !within(imported, lib.prefix) || home.dir == "tests":
			continue
		case allowedOwner(from, lib.owner), lib.also != "" && allowedOwner(from, lib.also):
			return ""
		default:
			return fmt.Sprintf("%s imports %s: only %s may; hide it there behind a value or a method of our own", from, imported, lib.owner)
		}
	}
	if home.dir != "app/core" || within(imported, "golang.org/x") {
		return ""
	}
	for _, lib := range coreMayUse() {
		if within(imported, lib.prefix) && from == lib.owner {
			return ""
		}
	}
	return fmt.Sprintf("%s imports %s: core keeps to the standard library; put what needs a library into another part", from, imported)
}

// allowedOwner reports whether a package may use a library of the owner. Below a
// part everything belongs to the part; a package of core owns for itself only.
func allowedOwner(from, owner string) bool {
	if within(owner, "app/core") {
		return from == owner
	}
	return within(from, owner)
}

// partOf returns the row of the part that a package belongs to.
func partOf(dir string) (part, bool) {
	name := dir
	switch segments := strings.Split(dir, "/"); {
	case dir == "app/api/ops": // a part of its own: the client knows it as well
	case segments[0] == "app" && len(segments) > 1:
		name = path.Join(segments[:2]...)
	default:
		name = segments[0]
	}
	i := slices.IndexFunc(parts(), func(p part) bool { return p.dir == name })
	if i < 0 {
		return part{dir: name}, false
	}
	return parts()[i], true
}

// innerOf returns the first row of inners that fits the package.
func innerOf(dir string) (inner, bool) {
	for _, rule := range inners() {
		if ok, err := path.Match(rule.dir, dir); ok && err == nil {
			return rule, true
		}
	}
	return inner{}, false
}

// own reports whether an import, as File has it, is one of our packages.
func own(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return first == "." || first == "app" || first == "migrations" || first == "tests"
}

// standard reports whether an import belongs to the standard library: only the
// name of a foreign module begins with a host.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// within reports whether a path is dir or lies below it.
func within(name, dir string) bool {
	return name == dir || strings.HasPrefix(name, dir+"/")
}

// short returns a package's path without "app/".
func short(dir string) string { return strings.TrimPrefix(dir, "app/") }

// list joins the short names: "core, tools".
func list(dirs []string) string {
	return cmp.Or(strings.ReplaceAll(strings.Join(dirs, ", "), "app/", ""), "nothing of ours")
}
