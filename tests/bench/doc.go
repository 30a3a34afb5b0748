// Package bench measures turns of Bobbin beside the bare rows of a turn and the provider
// alone. `make bench` prints the figures.
package bench
