// Package licenses holds the terms of the software of others that is linked into Bobbin:
// whoever passes the program on passes them on, too. scripts/notices writes them.
package licenses

import _ "embed" // the notices

//go:embed THIRD_PARTY_NOTICES
var thirdParty string

// ThirdParty returns the licenses and notices.
func ThirdParty() string { return thirdParty }
