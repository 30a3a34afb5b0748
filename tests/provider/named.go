package provider

import (
	"fmt"
	"regexp"
)

// named is a line of a message that names a call: call files__read {"path": "x"}.
var named = regexp.MustCompile(`(?m)^call (\S+) (\{.*\})$`)

// CallNamed is Options.Calls of a model that makes the calls that a user's message names, each in
// a line of its own.
func CallNamed(r Received) []Call {
	last := r.Messages[len(r.Messages)-1]
	if last.Role != "user" {
		return nil
	}
	var calls []Call
	for i, m := range named.FindAllStringSubmatch(last.Text, -1) {
		calls = append(calls, Call{ID: fmt.Sprintf("call_%d", i), Name: m[1], Arguments: m[2]})
	}
	return calls
}
