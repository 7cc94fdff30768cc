// Package stream is the worker's side of a stream as a protocol: which frame to send next, and what a
// received frame means. A [Session] outlives its streams and keeps what must survive a broken one: the
// leases that are held, settles that the server has not confirmed, and reports that it has not seen.
//
// Everything here is pure: no socket, no goroutine, no clock, no lock. The worker owns these.
package stream
