// Package document holds HTTP traffic against the OpenAPI document of the API.
//
// Load reads the document; an Operation says what may be asked and answered; a
// Transport checks everything that a client sends and gets. Answers are checked
// more strictly than the document says: a member that it does not name is a fault,
// so that the document cannot fall behind. Clients must not rely on that.
package document
