package chat

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
)

// faults collects what is wrong with the inputs of one request.
type faults struct{ core.Faults }

// checkMultitask returns what the message does while a run is active, empty if nothing is
// said of that, and complains about words that mean nothing. A branch cannot begin behind others that wait.
func (f *faults) checkMultitask(m core.Multitask, branch bool) core.Multitask {
	switch m {
	case core.MultitaskReject, core.MultitaskInterrupt:
		return m
	case "", core.MultitaskEnqueue:
		if !branch {
			return m
		}
		if m == "" {
			return core.MultitaskReject
		}
		f.Add("multitask", "must be reject or interrupt: a branch cannot wait behind other messages")
	default:
		f.Add("multitask", "must be enqueue, reject or interrupt")
	}
	return m
}

// checkTimezone complains about what is no IANA name; empty means UTC.
func (f *faults) checkTimezone(name string) {
	// "Local" is what the server's own time zone is called: no IANA name.
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		f.Add("timezone", "%q is not a time zone; use an IANA name such as Europe/Berlin", core.Clip(name, 100))
	}
}

// checkTags returns the tags, each once, in the order given; never nil.
func (f *faults) checkTags(tags []string) []string {
	if len(tags) > core.MaxTags {
		f.Add("tags", "has %d tags, at most %d are allowed", len(tags), core.MaxTags)
		return nil
	}
	out := []string{}
	for _, tag := range tags {
		tag = strings.TrimSpace(f.Text("tags", tag, core.MaxTagBytes))
		if tag == "" {
			f.Add("tags", "has an empty tag")
		}
		if !slices.Contains(out, tag) {
			out = append(out, tag)
		}
	}
	return out
}

// agent complains about an agent that is not configured.
func (s *Service) checkAgent(f *faults, name string) {
	if _, err := s.Agents.Get(name); err != nil {
		f.Add("agent", "%q does not exist; the agents are %s", core.Clip(name, 100), s.agentNames())
	}
}

// checkModel complains about a model that callers cannot choose; empty is the
// agent's.
func (s *Service) checkModel(f *faults, name string) {
	if name == "" {
		return
	}
	if _, err := s.FindModel(name); err != nil {
		f.Add("model", "cannot be used: %s", core.ShownMessage(err, "internal error"))
	}
}

func (s *Service) agentNames() string {
	var names []string
	for _, a := range s.Agents.List() {
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}

// ofUser returns how many runs the caller may have at once; 0 = no limit, for who acts
// for all users.
func (s *Service) ofUser(tenant core.Tenant) int {
	if tenant.User == "" {
		return 0
	}
	return s.Limits.OfUser
}

// userOf returns the user that something belongs to: a caller who acts for one
// user cannot act for another one.
func userOf(tenant core.Tenant, named string) (string, error) {
	return cmp.Or(tenant.User, named), tenant.CheckUser(named)
}
