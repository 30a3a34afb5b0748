package config

import (
	"fmt"
	"math"
	"strconv"
	"time"

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
		found.checkKey(l.USDPerDay >= 0 && l.USDPerDay <= maxUSD, at+".usd_per_day", "%g is out of range; use 0 (no limit) to %d", l.USDPerDay, maxUSD)
		found.checkKey(l.TokensPerDay >= 0, at+".tokens_per_day", "%d is negative; use 0 (no limit) or more", l.TokensPerDay)
		found.checkKey(l.USDPerDay != 0 || l.TokensPerDay != 0, at, "it limits nothing; set usd_per_day or tokens_per_day")
	}
}

// maxUSD bounds a limit, so that it can be counted in millionths.
const maxUSD = 1_000_000_000

// maxPrice bounds a price, in US dollars per million tokens.
const maxPrice = 1_000_000

func (m Model) validatePrices(at string, found *faults) {
	for _, price := range []struct {
		key   string
		value float64
	}{
		{"input_price", m.InputPrice}, {"output_price", m.OutputPrice},
		{"cache_read_price", m.CacheReadPrice}, {"cache_write_price", m.CacheWritePrice},
	} {
		ok := price.value >= 0 && price.value <= maxPrice && !math.IsNaN(price.value)
		found.checkKey(ok, at+price.key, "%g is out of range; use US dollars per million tokens, 0 (not known) to %d", price.value, maxPrice)
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
	found.checkKey(f.Time >= 100*time.Millisecond && f.Time <= 10*time.Minute, "tools.fetch_url.time", "%s is out of range; use 100ms to 10m", f.Time)
	found.checkKey(f.Bytes >= 1024 && f.Bytes <= core.MaxToolResult, "tools.fetch_url.bytes", "%s is out of range; use 1KiB to 8MiB", f.Bytes)
}
