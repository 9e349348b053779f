package kvevents

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
)

// A peer is somebody who listens where a publisher should, and sends bytes.
func peer(t *testing.T, bytes ...[]byte) endpoint {
	t.Helper()
	where := endpoint{"unix", filepath.Join(t.TempDir(), "peer")}
	l, err := net.Listen(where.network, where.addr)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			for _, b := range bytes {
				c.Write(b)
			}
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return where
}

// greeting is ZMTP 3.0 without security.
func greeting() []byte {
	g := make([]byte, 64)
	g[0], g[9], g[10] = 0xff, 0x7f, 3
	copy(g[12:], "NULL")
	return g
}

// ready is the command that ends a handshake.
func ready(properties string) []byte {
	return append([]byte{4, byte(6 + len(properties))}, "\x05READY"+properties...)
}

const isPub = "\x0bSocket-Type\x00\x00\x00\x03PUB"

func long(flags byte, size uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{flags}, size)
}

// TestHostileHandshake is about peers that would have the library reserve what they say, or
// slice beyond what they sent.
func TestHostileHandshake(t *testing.T) {
	tests := []struct {
		name string
		sent [][]byte
		want string
	}{
		{"another protocol", [][]byte{[]byte("HTTP/1.1 400 Bad Request\r\n" + strings.Repeat("x", 64))}, "greeting"},
		{"a huge command", [][]byte{greeting(), long(6, 1<<40)}, errFrame.Error()},
		{"a negative command", [][]byte{greeting(), long(6, 1<<63)}, errFrame.Error()},
		{"a name beyond the command", [][]byte{greeting(), ready("\xff\x00\x00")}, ""},
		{"a value beyond the command", [][]byte{greeting(), ready("\x01a\xff\xff\xff\xff")}, "EOF"},
		{"half a property", [][]byte{greeting(), ready("\x01a")}, "handshake"},
		{"a type that does not publish", [][]byte{greeting(), ready("\x0bSocket-Type\x00\x00\x00\x03SUB")}, "not compatible"},
		{"silence", nil, "timeout"},
	}
	for _, tt := range tests {
		c, err := dial(context.Background(), peer(t, tt.sent...), zmq4.Sub, 1000, 50*time.Millisecond)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err == nil {
			c.close()
		}
	}
}

func TestHostileFrames(t *testing.T) {
	tests := []struct {
		name string
		sent []byte
		want string
	}{
		{"a huge frame", long(2, 1<<62), errFrame.Error()},
		{"a frame over the limit", long(2, 1001), errFrame.Error()},
		{"frames over it together", append(append(long(3, 600), make([]byte, 600)...), long(2, 401)...), errFrame.Error()},
		{"frames without end", []byte(strings.Repeat("\x01\x00", 9)), errFrame.Error()},
	}
	for _, tt := range tests {
		c, err := dial(context.Background(), peer(t, greeting(), ready(isPub), tt.sent), zmq4.Sub, 1000, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.recv(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
		c.close()
	}
	fits := append(append(long(3, 600), make([]byte, 600)...), append(long(2, 400), make([]byte, 400)...)...)
	c, err := dial(context.Background(), peer(t, greeting(), ready(isPub), fits), zmq4.Sub, 1000, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if got, err := c.recv(); err != nil || len(got) != 2 || len(got[0]) != 600 || len(got[1]) != 400 {
		t.Errorf("a message of the limit: %d frames, %v", len(got), err)
	}
}

// TestFeedOutlivesHostilePeers follows one that breaks every connection.
func TestFeedOutlivesHostilePeers(t *testing.T) {
	where := peer(t, greeting(), ready(isPub), long(2, 1<<62))
	l := newLog()
	man := follow(t, l, quick(l), rank0, Endpoints{Events: "ipc://" + where.addr})
	for range 3 {
		l.wait(t, "disconnected")
	}
	man.Close()
}

func TestEndpoints(t *testing.T) {
	tests := []struct {
		e    Endpoints
		want string // "" is sound
	}{
		{Endpoints{Events: "tcp://h:5557", Replay: "tcp://h:5558"}, ""},
		{Endpoints{Events: "tcp://[::1]:5557"}, ""},
		{Endpoints{Events: "ipc:///tmp/x"}, ""},
		{Endpoints{Events: "ipc://@x"}, ""},
		{Endpoints{}, "use tcp:// or ipc://"},
		{Endpoints{Events: "h:5557"}, "use tcp:// or ipc://"},
		{Endpoints{Events: "inproc://x"}, "use tcp:// or ipc://"},
		{Endpoints{Events: "ipc://"}, "a path belongs"},
		{Endpoints{Events: "tcp://h"}, "HOST:PORT"},
		{Endpoints{Events: "tcp://h:"}, "HOST:PORT"},
		{Endpoints{Events: "tcp://h:*"}, "HOST:PORT"},
		{Endpoints{Events: "tcp://::1:5557"}, "in brackets"},
		{Endpoints{Events: "tcp://*:5557"}, "name the host"},
		{Endpoints{Events: "tcp://:5557"}, "name the host"},
		{Endpoints{Events: "tcp://0.0.0.0:5557"}, "name the host"},
		{Endpoints{Events: "tcp://[::]:5557"}, "name the host"},
		{Endpoints{Events: "tcp://h:1", Replay: "tcp://h:1"}, "of its own"},
		{Endpoints{Events: "tcp://h:1", Replay: "tcp://*:2"}, "replay: "},
	}
	for _, tt := range tests {
		err := tt.e.Check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.e, err, tt.want)
		}
	}
}
