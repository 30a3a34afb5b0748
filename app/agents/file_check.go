package agents

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// namePattern is what agents may be called: a name is part of URLs and files.
const namePattern = `^[a-z0-9][a-z0-9_-]{0,63}$`

// checkAgent notes what is wrong with the agent, whose fields have the right types.
func (d *document) checkAgent(agent core.Agent, known KnownParts) {
	switch {
	case agent.Name == "" && !d.hasField("name"):
		d.faultAt("", "name is missing; write for example name: helper")
	case !regexp.MustCompile(namePattern).MatchString(agent.Name):
		d.faultAt("name", "name %q is not allowed; use 1 to 64 lower-case letters, digits, - and _, with a letter or digit first", agent.Name)
	}
	d.checkKeys(agent)
	d.checkParameters(agent.ModelParameters)
	d.checkFallbacks(agent, known.Model)
	d.checkTools(agent.Tools, known)
	d.checkToolSettings(agent, known)
	d.checkSummaryModel("context.summary_model", agent.Context.SummaryModel, known.Model)
	d.checkSummaryModel("compaction.summary_model", agent.Compaction.SummaryModel, known.Model)
	d.checkCompaction(agent)
	d.checkContext(agent, known.Validate)
	d.checkModels(agent, known)
}

// hasField reports whether the field is in the file.
func (d *document) hasField(path string) bool {
	_, ok := d.places[path]
	return ok
}

// checkFallbacks checks the models that take the place of the agent's own.
func (d *document) checkFallbacks(agent core.Agent, check func(string) (llm.Info, error)) {
	for i, name := range agent.FallbackModels {
		at := fmt.Sprintf("fallback_models[%d]", i)
		switch {
		case name == "": // a fault already
		case name == agent.Model:
			d.faultAt(at, "fallback model %q is the model itself; name another, or none", name)
		case slices.Contains(agent.FallbackModels[:i], name):
			d.faultAt(at, "fallback model %q is there twice", name)
		default:
			d.checkModel(at, "fallback ", name, check)
		}
	}
}

// checkModel checks a model that the agent names beside its own. A model that is known and
// cannot be used here, for example without its key, is no fault: the agent works without it.
func (d *document) checkModel(at, prefix, name string, check func(string) (llm.Info, error)) {
	if name == "" || check == nil {
		return
	}
	if info, err := check(name); err != nil && info.Name == "" {
		d.faultAt(at, "%s%s", prefix, err)
	}
}

func (d *document) checkTools(tools []string, known KnownParts) {
	for i, tool := range tools {
		at := fmt.Sprintf("tools[%d]", i)
		switch {
		case tool == "": // a fault already
		case slices.Contains(tools[:i], tool):
			d.faultAt(at, "tool %q is there twice", tool)
		case d.isDefined(tool, known), known.broken[tool]:
		case known.Off[tool] != "":
			d.faultAt(at, "tool %q is switched off; %s", tool, known.Off[tool])
		case known.Tools == nil || slices.Contains(known.Tools, tool):
		case known.leftOut(tool) != "":
			d.leaveOut(tool, known.leftOut(tool))
		default:
			d.faultAt(at, "tool %q does not exist; %s", tool, suggestWord(tool, d.toolNames(known)))
		}
	}
}

// checkSummaryModel checks the model of a field that names one for summaries; nil = the field is
// not in the file.
func (d *document) checkSummaryModel(path string, name *string, check func(string) (llm.Info, error)) {
	if name != nil {
		d.checkModel(path, path+": ", *name, check)
	}
}

// checkCompaction checks what the loop of one run is kept small by, as it will be
// used: defaults with what the file says.
func (d *document) checkCompaction(agent core.Agent) {
	_, err := contextwindow.ResolveLoop(agent.Context.Policy, agent.Compaction)
	for _, fault := range splitErrors(err) {
		name, _, _ := strings.Cut(fault.Error(), " ")
		d.faultAt("compaction."+name, "compaction.%s", fault)
	}
}

// checkContext checks whether the context settings go together, which nobody can tell without a policy.
func (d *document) checkContext(agent core.Agent, validate func(core.Agent) error) {
	if validate == nil || d.broken["context.policy"] {
		return
	}
	for _, err := range splitErrors(validate(agent)) {
		text := err.Error()
		name, _, _ := strings.Cut(text, " ")
		if path := "context." + name; d.hasField(path) {
			d.faultAt(path, "context.%s", text)
			continue
		}
		d.faultAt("context", "context: %s", strings.TrimPrefix(text, "context: "))
	}
}

// splitErrors returns the errors that are joined in err, or in the cause of a
// core.Error; none for nil.
func splitErrors(err error) []error {
	var shown *core.Error
	if errors.As(err, &shown) {
		if shown.Err == nil {
			return []error{shown}
		}
		err = shown.Err
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// suggestWord says which of the words was meant, or which there are.
func suggestWord(word string, words []string) string {
	if meant := core.Nearest(word, words); meant != "" {
		return "did you mean " + meant + "?"
	}
	if len(words) == 0 {
		return "there are none"
	}
	return "there are " + strings.Join(slices.Sorted(slices.Values(words)), ", ")
}
