package catalog

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/summarize"
)

// namePattern is what agents may be called: a name is part of URLs and files.
const namePattern = `^[a-z0-9][a-z0-9_-]{0,63}$`

// maxIterations bounds max_iterations: beyond it a loop is a mistake.
const maxIterations = 1000

// check notes what is wrong with the agent, whose fields have the right types.
func (d *document) check(agent core.Agent, known Known) {
	switch {
	case agent.Name == "" && !d.has("name"):
		d.faultAt("", "name is missing; write for example name: helper")
	case !regexp.MustCompile(namePattern).MatchString(agent.Name):
		d.faultAt("name", "name %q is not allowed; use 1 to 64 lower-case letters, digits, - and _, with a letter or digit first", agent.Name)
	}
	if agent.MaxIterations < 0 || agent.MaxIterations > maxIterations {
		d.faultAt("max_iterations", "max_iterations is %d; use 1 to %d, or 0 for the default (%d)", agent.MaxIterations, maxIterations, core.DefaultMaxIterations)
	}
	d.checkFallbacks(agent, known.Model)
	d.checkTools(agent.Tools, known)
	d.checkToolSettings(agent, known)
	d.checkCompaction(agent, known.Model)
	d.checkContext(agent, known.Validate)
}

// has reports whether the field is in the file.
func (d *document) has(path string) bool {
	_, ok := d.places[path]
	return ok
}

// checkFallbacks checks the models that take the place of the agent's own.
func (d *document) checkFallbacks(agent core.Agent, check func(string) error) {
	for i, name := range agent.FallbackModels {
		at := fmt.Sprintf("fallback_models[%d]", i)
		switch {
		case name == "": // a fault already
		case name == agent.Model:
			d.faultAt(at, "fallback model %q is the model itself; name another, or none", name)
		case slices.Contains(agent.FallbackModels[:i], name):
			d.faultAt(at, "fallback model %q is there twice", name)
		case check != nil:
			if err := check(name); err != nil {
				d.faultAt(at, "fallback %s", err)
			}
		}
	}
}

func (d *document) checkTools(tools []string, known Known) {
	for i, tool := range tools {
		at := fmt.Sprintf("tools[%d]", i)
		switch {
		case tool == "": // a fault already
		case slices.Contains(tools[:i], tool):
			d.faultAt(at, "tool %q is there twice", tool)
		case known.Off[tool] != "":
			d.faultAt(at, "tool %q is switched off; %s", tool, known.Off[tool])
		case known.Tools != nil && !slices.Contains(known.Tools, tool):
			d.faultAt(at, "tool %q does not exist; %s", tool, suggestion(tool, known.Tools))
		}
	}
}

// checkCompaction checks what the loop of one run is kept small by, as it will be
// used: defaults with what the file says.
func (d *document) checkCompaction(agent core.Agent, model func(string) error) {
	_, err := contextwindow.ResolveLoop(agent.Context.Policy, agent.Compaction)
	for _, fault := range single(err) {
		name, _, _ := strings.Cut(fault.Error(), " ")
		d.faultAt("compaction."+name, "compaction.%s", fault)
	}
	if name := agent.Compaction.SummaryModel; name != nil && *name != "" && model != nil {
		if err := model(*name); err != nil {
			d.faultAt("compaction.summary_model", "compaction.summary_model: %s", err)
		}
	}
}

// checkContext checks the words of the context settings, then whether the
// settings go together. A file with faults already is not asked for more.
func (d *document) checkContext(agent core.Agent, validate func(core.Agent) error) {
	c := agent.Context
	d.oneOf("policy", &c.Policy, contextwindow.PresetNames())
	d.oneOf("strategy", c.Strategy, summarize.Names())
	d.oneOf("timing", c.Timing, []string{string(contextwindow.TimingInline), string(contextwindow.TimingAfterRun), string(contextwindow.TimingBackground)})
	if validate == nil || len(d.faults) > 0 {
		return
	}
	for _, err := range single(validate(agent)) {
		text := err.Error()
		name, _, _ := strings.Cut(text, " ")
		if path := "context." + name; d.has(path) {
			d.faultAt(path, "context.%s", text)
			continue
		}
		d.faultAt("context", "context: %s", strings.TrimPrefix(text, "context: "))
	}
}

// oneOf notes a fault unless the field of context is one of the words, or not set.
func (d *document) oneOf(name string, value *string, words []string) {
	path := "context." + name
	if value == nil || *value == "" && !d.has(path) || slices.Contains(words, *value) {
		return
	}
	if *value == "" {
		d.faultAt(path, "%s is empty; use one of %s", path, strings.Join(words, ", "))
		return
	}
	d.faultAt(path, "%s %q does not exist; %s", path, *value, suggestion(*value, words))
}

// single returns the errors that are joined in err, or in the cause of a
// core.Error; none for nil.
func single(err error) []error {
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

// suggestion says which of the words was meant, or which there are.
func suggestion(word string, words []string) string {
	if meant := core.Nearest(word, words); meant != "" {
		return "did you mean " + meant + "?"
	}
	if len(words) == 0 {
		return "there are none"
	}
	return "there are " + strings.Join(slices.Sorted(slices.Values(words)), ", ")
}
