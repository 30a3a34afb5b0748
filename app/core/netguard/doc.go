// Package netguard connects to addresses that strangers name, and to no other ones
// than may be reached: Public addresses, unless its user says otherwise.
//
// What may be reached is decided when the connection is made, on the address that
// it goes to: a name is resolved once, and what is checked is what is connected to.
// So a name that resolves to something else the second time, or a redirect, comes
// to the same check.
package netguard
