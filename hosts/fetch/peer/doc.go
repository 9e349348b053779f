// Package peer moves blocks from one kvrt to another: [Client] pulls, [Server] serves.
// PROTOCOL.md beside this file is the specification.
//
// A [Link] is one authenticated connection, made by a transport (packages below this
// one); peertest is the suite that every transport passes. One operation at a time
// uses a link, and a link about which there is any doubt is closed. So an operation
// that fails leaves nothing behind that could still write: when [Client.Pull] returns,
// nobody writes to the memory that it had reserved, whatever the reason.
//
// What a block must show before its [Sink] commits it: it is the key that was asked
// for at that place, its length is allowed and what was announced, its bytes have the
// announced CRC32C, and the source says at its end that the slot still has the
// generation that it had at the start, under the same incarnation of the source.
//
// The checksum finds accidents. It is no authentication: who may speak at all is the
// transport's and [Authorizer]'s to decide, and data that is sent in clear can be changed on
// the way by whoever owns the network.
package peer
