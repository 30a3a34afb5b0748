package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"bobbin/app/agents"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/netguard"
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

// checkOptions returns the options of a run as they are kept, and complains about what is
// wrong with them whatever the agent; nil = none.
func (f *faults) checkOptions(given *core.RunOptions) *core.RunOptions {
	if given == nil {
		return nil
	}
	o := *given
	if len(o.Tools) > core.MaxClientTools {
		f.Add("options.tools", "has %d tools, at most %d are allowed", len(o.Tools), core.MaxClientTools)
		return nil
	}
	o.Instructions = f.Text("options.instructions", o.Instructions, core.MaxRunOptions)
	if o.ToolChoice == core.ToolChoiceWordAuto {
		o.ToolChoice = core.ToolChoiceAuto
	}
	f.ID("options.tool_choice", string(o.ToolChoice), maxToolName)
	before := len(f.Faults)
	agents.CheckParameters(&f.Faults, "options.", o.ModelParameters)
	o.Tools = slices.Clone(o.Tools)
	known := map[string]bool{}
	for i, t := range o.Tools {
		at := fmt.Sprintf("options.tools[%d]", i)
		agents.CheckClientTool(&f.Faults, at, t)
		if known[t.Name] {
			f.Add(at+".name", "%q is there twice", core.Clip(t.Name, maxToolName))
		}
		known[t.Name] = true
		o.Tools[i].Description = core.CleanText(t.Description)
	}
	if len(f.Faults) > before {
		return nil
	}
	text, err := json.Marshal(o) // it fails for a schema that is no JSON, which is a fault already
	if err == nil && len(text) > core.MaxRunOptions {
		f.Add("options", "have %d bytes as JSON, at most %d are allowed", len(text), core.MaxRunOptions)
	}
	return &o
}

// maxToolName bounds the name of a tool, in bytes.
const maxToolName = 64

// checkForRun complains about options that do not go with the agent or with a model that may
// answer. Fallback models need only take what an answer depends on: of the rest they leave
// out what they do not take. Of lenient options it returns the rest, and the keys of those that the
// model does not take.
func (s *Service) checkForRun(o core.RunOptions, agent core.Agent, model llm.Model) (_ core.RunOptions, ignored []string, _ error) {
	var f faults
	for i, t := range o.Tools {
		if agent.HasTool(t.Name) {
			f.Add(fmt.Sprintf("options.tools[%d].name", i), "%q is a tool of the agent %s; choose another name", t.Name, agent.Name)
		}
	}
	named := func(t core.ClientTool) bool { return t.Name == o.ToolChoice.Tool() }
	switch tool := o.ToolChoice.Tool(); {
	case tool != "" && !agent.HasTool(tool) && !slices.ContainsFunc(o.Tools, named):
		f.Add("options.tool_choice", "%q is not a tool of this run; use auto, none, required, or the name of a tool", core.Clip(tool, maxToolName))
	case o.ToolChoice.Forced() && len(agent.Tools)+len(o.Tools) == 0:
		f.Add("options.tool_choice", "%s needs a tool, and this run has none", o.ToolChoice)
	}
	if err := f.Err(); err != nil {
		return o, nil, err
	}
	for _, p := range model.Info().LackingForRun(agent, o) {
		rest, ok := p.LeaveOut(o)
		if !ok || !o.Lenient {
			return o, nil, lackingError(model, p)
		}
		if o = rest; !slices.Contains(ignored, p.Option()) {
			ignored = append(ignored, p.Option())
		}
	}
	for _, name := range agent.FallbackModels {
		fallback, err := s.FindModel(name)
		if err != nil || fallback.Info().Name == model.Info().Name {
			continue // one that cannot be used is refused when the agents are loaded
		}
		for _, p := range fallback.Info().LackingForRun(agent, o) {
			if _, ok := p.LeaveOut(o); p.Binding() && !(ok && o.Lenient) {
				return o, nil, lackingError(fallback, p)
			}
		}
	}
	return o, ignored, nil
}

// lackingError says that a model does not take what the options of a run ask for.
func lackingError(model llm.Model, p llm.Parameter) error {
	return &core.Error{Kind: core.ErrInvalid, Fields: []core.FieldError{{Field: "options." + p.Key(), Detail: fmt.Sprintf("is not taken: the model takes no %s", p)}},
		Message: fmt.Sprintf("the model %q does not take %s: leave it out of the options, or choose another model", cmp.Or(model.Info().Name, "default"), p)}
}

// maxWebhook bounds the address of a webhook, in bytes.
const maxWebhook = 2048

// checkWebhook complains about a webhook that could never be told anything; nil is none,
// and with private its address need not be of the public internet. Where a name
// leads to is looked at when it is connected to.
func (f *faults) checkWebhook(w *core.Webhook, private bool) {
	if w == nil {
		return
	}
	u, err := url.Parse(string(w.URL))
	isPublic := func(host string) bool { // a name, or an address of the public internet
		addr, err := netip.ParseAddr(host)
		return err != nil || netguard.Public(addr) == nil
	}
	switch {
	case err != nil || len(w.URL) > maxWebhook || core.CleanText(string(w.URL)) != string(w.URL) || u.Hostname() == "":
		f.Add("webhook", "url is not an address of at most %d bytes; write for example https://example.com/hook", maxWebhook)
	case u.Scheme != "https" && (u.Scheme != "http" || !private):
		f.Add("webhook", "url must begin with https:// (the operator can allow http:// by webhooks.allow_private)")
	case u.User != nil || u.Fragment != "":
		f.Add("webhook", "url must not have a user, a password or a fragment")
	case !private && !isPublic(u.Hostname()):
		f.Add("webhook", "url is not of the public internet (the operator can allow others by webhooks.allow_private)")
	}
	if _, err := core.WebhookKey(w.Secret); err != nil {
		f.Add("webhook", "secret %s", err)
	}
}

// SetDefaultWebhook replaces the webhook of the owner's runs whose message and session have
// none. Runs that end from now on are reported to it.
func (s *Service) SetDefaultWebhook(ctx context.Context, tenant core.Tenant, hook core.Webhook) (core.Webhook, error) {
	var f faults
	f.checkWebhook(&hook, s.PrivateWebhooks)
	if err := f.Err(); err != nil {
		return core.Webhook{}, err
	}
	return hook, s.Webhooks.Set(ctx, tenant.Owner, hook)
}
