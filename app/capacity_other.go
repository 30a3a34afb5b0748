//go:build !unix

package app

import "math"

// maxOpenFiles returns math.MaxInt32: only Unix limits a process's open files.
func maxOpenFiles() int { return math.MaxInt32 }
