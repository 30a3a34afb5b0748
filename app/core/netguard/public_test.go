package netguard_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"bobbin/app/core/netguard"
	"bobbin/tests/compare"
)

// evil are addresses that must never be connected to, in every form.
func evil() []string {
	return []string{
		"127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"169.254.169.254", "169.254.0.1", "100.64.0.1", "100.100.100.200", "100.127.255.255", "192.0.0.192", "192.0.2.1",
		"198.18.0.1", "198.51.100.7", "203.0.113.9", "192.88.99.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1",
		"64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1",
		"fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd00::1", "fd00:ec2::254", "ff02::1", "ff0e::1",
		"2001:db8::1", "2002:7f00:1::1", "2002:a00:1::", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "3fff::1", "100::1", "5f00::1",
	}
}

// The production default refuses this machine, private networks, clouds' metadata
// and their like, in all the forms in which they can be written.
func TestPublic(t *testing.T) {
	t.Parallel()
	for _, address := range evil() {
		compare.True(t, netguard.Public(netip.MustParseAddr(address)) != nil, "%s is taken for public", address)
	}
	compare.True(t, netguard.Public(netip.Addr{}) != nil, "no address is taken for public")
	for _, address := range []string{
		"1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.32.0.1", "192.167.1.1", "223.255.255.255",
		"::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2606:4700:4700::1111", "2a00:1450:4001:800::200e", "2400:cb00::1",
	} {
		compare.Error(t, address+": want that it is public", nil, netguard.Public(netip.MustParseAddr(address)))
	}
}

// Link-local addresses and those of clouds' metadata are refused whatever else is
// allowed, in all their forms.
func TestMetadataIsAlwaysRefused(t *testing.T) {
	t.Parallel()
	var asked []netip.Addr
	dialer := func(to string) netguard.Dialer {
		return netguard.Dialer{
			Until: time.Now().Add(time.Minute), Bytes: 1,
			Lookup: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr(to)}, nil },
			Allow:  func(addr netip.Addr) error { asked = append(asked, addr); return errors.New("asked") },
		}
	}
	for _, address := range []string{
		"169.254.169.254", "169.254.0.1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "64:ff9b:1::a9fe:a9fe", "::169.254.169.254", "::ffff:0:169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192",
		"fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fe80::1", "fe80::1%lo",
	} {
		compare.Error(t, address+": want it refused", netguard.ErrNotPublic, compare.ErrorOf(dialer(address).Dial(t.Context(), "tcp", "name.example:80")))
	}
	compare.True(t, len(asked) == 0, "got asked about %v, want none", asked)
	if _, err := dialer("127.0.0.1").Dial(t.Context(), "tcp", "name.example:80"); err == nil || len(asked) != 1 {
		t.Errorf("a private address: got %v, asked %v, want it to be decided about", err, asked)
	}
}
