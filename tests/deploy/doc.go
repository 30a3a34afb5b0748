// Package deploy holds the files of deploy/ against the program: that they can be read,
// that every setting and flag in them exists and makes a configuration that the program
// takes, and that nobody is killed before the grace period is over.
package deploy
