package core

import "strings"

// Suggest says which of the known words was meant by who wrote word, with what stands before it, or else the hint.
func Suggest(word string, known []string, prefix, hint string) string {
	if near := Nearest(word, known); near != "" {
		return "did you mean " + prefix + near + "?"
	}
	return hint
}

// Nearest returns the word of known that somebody who wrote word most likely
// meant, and "" if none is near: at most a third of the letters differ.
func Nearest(word string, known []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// editDistance returns how many bytes have to be inserted, deleted, replaced, or
// swapped with their neighbor to make b of a.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
