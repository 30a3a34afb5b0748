// Package commandline runs the program as somebody at a terminal does, in a folder,
// an environment and a home that an attacker could have prepared.
package commandline
