// Package fetch reads pages of the public web for agents that may be told to by
// anybody: by their users, and by texts that they read.
//
// What may be reached is decided when the connection is made, on the address that
// it goes to (core/netguard): a name that resolves to something else the second time, or
// a redirect, comes to the same check. A fetch is bounded in time, in bytes (of the
// page, and of what comes over the connection for it), in redirects and in what it
// makes of the page; when its time is over its connections are closed. It sends no
// credentials, keeps no cookies and uses no proxy, as the addresses that a proxy
// connects to could not be checked.
//
// What a page does not show to its readers is left out, and the reader is told so:
// see nesting. That is no proof against instructions in a page, which may stand in
// its visible text, too.
package fetch
