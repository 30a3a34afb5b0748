// Package attach says what an attached file is and what models are sent of it.
//
// What a file is follows from its bytes, never from what its sender claims: Sniff
// reads the header of an image and all of a text. What a model gets of it is the
// same on every day and every machine, as a prompt's bytes must not change:
// Text and Fence are functions of the content alone.
//
// A part's tokens are counted once, when its message is accepted, and hold for
// every model: Tokens takes the most that any of the ways in which
// the part can be sent costs.
package attach
