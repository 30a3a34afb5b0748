package agents

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// checkKeys checks words and numbers against the table of keys.
func (d *document) checkKeys(agent core.Agent) {
	for _, k := range FileKeys() {
		if strings.Contains(k.Path, anyTool) || !d.hasField(k.Path) {
			continue
		}
		if problem := k.problemOf(valueAt(agent, k.Path)); problem != "" {
			d.faultAt(k.Path, "%s %s", k.Path, problem)
			d.broken[k.Path] = true
		}
	}
}

// problemOf says what is wrong with a word or a number; empty = nothing. A value that is not
// valid is not there, or a fault already.
func (k FileKey) problemOf(value reflect.Value, set bool) string {
	switch {
	case !value.IsValid():
	case len(k.words) > 0:
		return k.wordProblem(value.String())
	case k.within != nil && (set || !k.zero):
		n := value.Convert(reflect.TypeFor[float64]()).Float()
		if n < k.within[0] || n > k.within[1] {
			return fmt.Sprintf("is %s; use %s", formatBound(n), strings.ReplaceAll(k.Bounds, "`", ""))
		}
	}
	return ""
}

// wordProblem says what is wrong with a word that is none of the key's.
func (k FileKey) wordProblem(word string) string {
	switch {
	case slices.Contains(k.words, word):
		return ""
	case word == "":
		return "is empty; use one of " + strings.Join(k.words, ", ")
	default:
		return fmt.Sprintf("%q does not exist; %s", core.Clip(word, 100), suggestWord(word, k.words))
	}
}

// checkParameters checks the parameters of models that are more than a word or a number.
func (d *document) checkParameters(p core.ModelParameters) {
	for _, fault := range parameterFaults(p, d.hasField) {
		d.faultAt(fault.Field, "%s %s", fault.Field, fault.Detail)
	}
	if f := p.ResponseFormat; f != nil && len(f.Schema) > 0 && !d.broken["response_format.schema"] {
		if err := tools.CheckSchema(f.Schema); err != nil {
			d.faultAt("response_format.schema", "response_format.schema: %s", err)
		}
	}
}

// checkModels checks that the agent's models take its parameters, also models that cannot be
// used here, which is reported elsewhere.
func (d *document) checkModels(agent core.Agent, known KnownParts) {
	if known.Model == nil {
		return
	}
	for i, name := range append([]string{agent.Model}, agent.FallbackModels...) {
		info, _ := known.Model(name)
		which := "model"
		if i > 0 {
			which = "fallback model"
		}
		for _, p := range info.LackingFor(agent) {
			if p == llm.Tools && known.dropTools {
				continue
			}
			d.faultAt(p.Key(), "%s: the %s %s does not take %s; remove it, or choose another model", p.Key(), which, info.Name, p)
		}
	}
}
