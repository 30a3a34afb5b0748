package config

import (
	"fmt"
	"strconv"

	"bobbin/app/core"
)

// validateSpendLimits checks that each limit is of an owner and limits something. Keys
// in the database have owners that nobody knows here.
func (c Config) validateSpendLimits(found *faults) {
	seen := map[string]int{}
	for i, l := range c.Auth.Limits {
		at := fmt.Sprintf("auth.limits[%d]", i)
		found.checkKey(ValidKeyName(l.Key), at+".key", "%q is not the name of an owner; write the name of a key, or %s for this machine's own user", l.Key, core.LocalOwner)
		if first, twice := seen[l.Key]; twice {
			found.addFault(at+".key", "%q has a limit in auth.limits[%d] already", l.Key, first)
		}
		seen[l.Key] = i
		found.checkKey(l.USDPerDay != 0 || l.TokensPerDay != 0, at, "it limits nothing; set usd_per_day or tokens_per_day")
	}
}

func (t Tools) validate(found *faults) {
	var kinds []string
	for _, kind := range core.ToolKinds() {
		kinds = append(kinds, string(kind))
	}
	for _, kind := range t.Allow {
		oneOf(found, "tools.allow", kind, kinds)
	}
	t.FetchURL.validate(found)
}

func (f FetchURL) validate(found *faults) {
	for _, port := range f.Ports {
		n, err := strconv.Atoi(port)
		found.checkKey(err == nil && n >= 1 && n <= 65535, "tools.fetch_url.ports", "%q is not a port; use 1 to 65535, such as 443", port)
	}
	found.checkKey(len(f.Ports) > 0, "tools.fetch_url.ports", "it is empty; write the ports that may be connected to, such as 80,443")
}
