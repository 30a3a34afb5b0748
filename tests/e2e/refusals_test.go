package e2e_test

// some returns n of the list, evenly.
func some[T any](list []T, n int) (out []T) {
	for i := range n {
		out = append(out, list[i*len(list)/n])
	}
	return out
}
