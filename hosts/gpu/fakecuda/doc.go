// Package fakecuda builds a libcuda for tests and steers it. The library is written in C
// (lib/) and loaded as a real one would be, so that the tests of package cuda run its shim,
// its poller and its cgo calls as they are.
//
// It is no friend of its user: device addresses fault when the host touches them, copies are
// made late, on the stream's own thread and in a random order, every call looks for the
// context on the calling thread, memory must be registered and a copy must lie within one
// registration, handles are counted, and what a driver must not be asked is written down as
// a violation. Functions fail by script, and the library plays drivers of several versions.
package fakecuda
