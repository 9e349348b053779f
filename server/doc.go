// Package server is the daemon: the data socket that engines send hints to and routers
// send routing contexts to, the same as JSON over HTTP on a second Unix socket, and the
// admin API that operators and their tools talk to.
//
// The data socket speaks length-prefixed msgpack over a Unix socket; PROTOCOL.md is
// its description and the golden frames under testdata are its examples. [Client] is
// its Go client. A connection has one goroutine, one runtime.Response and two buffers
// for its whole life, dispatches inline, and allocates nothing per hint, or per routing
// context.
//
// The admin API is HTTP with JSON on loopback; ADMIN.md lists it, and [Admin] is its Go
// client. It has no authentication of its own: it refuses what a web page could make a
// browser send, and listens beyond loopback only when told to.
//
// A [Server] is handed what it serves: a runtime with its guests, a hint store, a fleet
// of workers, a function that reloads the configuration, and an HTTP handler for metrics
// (package metrics makes one).
package server
