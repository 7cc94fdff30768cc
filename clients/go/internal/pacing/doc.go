// Package pacing has the decisions of a worker that depend on time: how it stops, how many jobs it asks
// for, when a batch is due, and how long a handler may ignore its end. All of it is pure: the time is
// an argument.
package pacing
