package llm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
)

// Offer is the models of a Registry that callers of the API may choose: its entries,
// its default, and further names. A name that only looks like that of a provider's
// model is not offered. Safe for concurrent use.
type Offer struct {
	registry *Registry
	more     func() []string
}

// Offer returns the models that callers may choose: what more returns, besides the
// entries and the default.
func (r *Registry) Offer(more func() []string) *Offer {
	return &Offer{registry: r, more: more}
}

// Get returns the model of a name that is offered, or the default model for an empty
// name. Others are core.ErrNotFound. No error shows the server's configuration.
func (o *Offer) Get(name string) (Model, error) {
	if name != "" {
		if names := o.offeredNames(); !slices.Contains(names, name) {
			return nil, core.Errorf(core.ErrNotFound, "%q is not a model of this server; the models are %s",
				core.Clip(name, 100), strings.Join(names, ", "))
		}
	}
	m, err := o.registry.Get(name)
	if err != nil {
		return nil, HideCause(name, err)
	}
	return m, nil
}

// List returns the models that are offered and can be used, sorted by name. The default is the
// one of that name; empty = the default model.
func (o *Offer) List(preferred string) []core.ModelChoice {
	preferred = cmp.Or(preferred, o.registry.defaults.Model)
	choices := []core.ModelChoice{}
	for _, name := range o.offeredNames() {
		if m, err := o.registry.Get(name); err == nil {
			info := m.Info()
			choices = append(choices, core.ModelChoice{Name: name, Provider: info.Provider, Window: info.Window, Images: info.Images, Default: name == preferred})
		}
	}
	return choices
}

// offeredNames returns the names that are offered, sorted.
func (o *Offer) offeredNames() []string {
	names := slices.Concat(o.more(), o.registry.Names(), []string{o.registry.defaults.Model})
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// HideCause returns the error of Registry.Get as callers of the API may see it: with
// its kind and without the names of environment variables and settings.
func HideCause(name string, err error) error {
	var shown *core.Error
	if !errors.As(err, &shown) {
		return err
	}
	which := "the default model"
	if name != "" {
		which = fmt.Sprintf("the model %q", core.Clip(name, 100))
	}
	return &core.Error{Kind: shown.Kind, Err: err,
		Message: which + " cannot be used: choose another one, or ask the operator, who finds the reason with: bobbin doctor"}
}
