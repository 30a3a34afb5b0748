// Package fetch reads pages of the public web for agents that may be told to by
// anybody: by their users, and by texts that they read.
//
// What may be reached is decided when the connection is made, on the address that
// it goes to (Public): a name that resolves to something else the second time, or
// a redirect, comes to the same check. A fetch is bounded in time, in bytes, in
// redirects and in what it makes of the page; it sends no credentials, keeps no
// cookies and uses no proxy, as the addresses that a proxy connects to could not
// be checked.
package fetch
