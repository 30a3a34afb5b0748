package models

import "bobbin/app/core"

// StandingInstruction is a row of standing_instructions.
type StandingInstruction struct {
	core.StandingInstruction
	Owner  string
	Number int // within its message: 1, 2, 3 …
}
