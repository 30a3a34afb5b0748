// Package bench measures one build of Bobbin against another: both run as processes
// beside each other and have their turns by turns, so that whatever else the machine
// does meets both alike. `make show-durability` builds them and prints the figures.
package bench
