package config

import (
	"math"
	"time"
)

// Peers configures the exchange of blocks with other kvrts. It needs a block store.
type Peers struct {
	Socket string // path of the Unix socket for processes of this machine; empty: none
	Listen string // host:port for other machines; empty: nobody is served there
	// Certificate and Key are PEM files, and Roots those that sign the certificates of
	// peers. Without them nothing is served or fetched over TCP.
	Certificate, Key, Roots string
	// SourceNames are whose certificates a source may show, by name as in PeerRule. Empty:
	// they must be for the host that the hint names.
	SourceNames []string
	// ClearData lets payload go in clear where the other side has it too.
	ClearData bool
	Allow     []PeerRule   // who may read what; empty: nobody may read anything
	Sockets   []PeerSocket // sources that are processes of this machine
	// FetchTimeout bounds one fetch from a peer; 0: 1 s.
	FetchTimeout time.Duration
}

// maxFetchTimeout is how long a daemon waits for a fetch.
const maxFetchTimeout = 10 * time.Second

// PeerRule lets one peer read blocks. Exactly one of UID and Name says who it is.
type PeerRule struct {
	UID        *uint32     // a user of this machine
	Name       string      // what the peer's certificate is for
	Namespaces []PeerSpace // of whose blocks
	All        bool        // every namespace, by shared memory too
}

// PeerSpace is the blocks of one tenant that have one name.
type PeerSpace struct{ Tenant, Namespace string }

// PeerSocket says where a source is reached that is a process of this user.
type PeerSocket struct {
	Source string // as hints name it
	Path   string
}

func peers() object[Peers] {
	return object[Peers]{
		fields: []field[Peers]{
			opt("socket", "Path of a Unix socket for kvrts of this machine, which it hands the memory of the block store. Default: none.",
				func(p *Peers) *string { return &p.Socket }, socketPath()),
			opt("listen", "host:port for kvrts of other machines, over TLS; it needs certificate, key and roots. Default: none.",
				func(p *Peers) *string { return &p.Listen }, hostPort()),
			opt("certificate", "PEM file of the certificate that this kvrt shows, whether it serves or fetches.",
				func(p *Peers) *string { return &p.Certificate }, filePath()),
			opt("key", "PEM file of the certificate's key.",
				func(p *Peers) *string { return &p.Key }, filePath()),
			opt("roots", "PEM file of the certificates that sign those of peers.",
				func(p *Peers) *string { return &p.Roots }, filePath()),
			key("source_names", "What the certificates of sources are for, as in allow. []: for the host that the hint names, whichever it is.",
				func(p *Peers) *[]string { return &p.SourceNames }, many[string]{item: text{}, what: "name", identity: quotedID}),
			opt("clear_data", "Lets blocks go in clear where the other side allows it too: whoever owns the network can read and change them.",
				func(p *Peers) *bool { return &p.ClearData }, yesNo{}),
			opt("fetch_timeout", "How long one fetch from a peer may take, 10s at most. Default: 1s.",
				func(p *Peers) *time.Duration { return &p.FetchTimeout }, duration{time.Millisecond}),
			key("allow", "Who may read blocks. []: nobody.",
				func(p *Peers) *[]PeerRule { return &p.Allow }, many[PeerRule]{item: peerRule()}),
			key("sockets", "Sources that are kvrts of this machine and this user, and are reached by Unix socket and shared memory.",
				func(p *Peers) *[]PeerSocket { return &p.Sockets },
				many[PeerSocket]{item: peerSocket(), what: "source", identity: func(s *PeerSocket) (string, string) { return id(s.Source), "source" }}),
		},
		check: func(r *reader, n *node, at *path, p *Peers) {
			if p.Allow == nil {
				p.Allow = []PeerRule{}
			}
			if p.SourceNames == nil {
				p.SourceNames = []string{}
			}
			if v := n.child("fetch_timeout"); v != nil && p.FetchTimeout > maxFetchTimeout {
				r.add(v.line, v.col, at.under("fetch_timeout"), "must be at most %s", maxFetchTimeout)
			}
			given := 0
			for _, v := range []string{p.Certificate, p.Key, p.Roots} {
				if v != "" {
					given++
				}
			}
			if v := n.child("listen"); v != nil && given == 0 {
				r.add(v.line, v.col, at.under("listen"), "needs certificate, key and roots: peers of other machines show certificates")
			} else if given%3 != 0 {
				r.add(n.line, n.col, at, "certificate, key and roots go together: give all three or none")
			}
		},
	}
}

func peerRule() object[PeerRule] {
	return object[PeerRule]{
		fields: []field[PeerRule]{
			key("uid", "Number of a user of this machine. Either this or name.",
				func(p *PeerRule) **uint32 { return &p.UID }, perhaps[uint32]{whole[uint32]{0, math.MaxUint32 - 1}}),
			opt("name", "What the peer's certificate is for: its first URI, else its first DNS name, else its common name.",
				func(p *PeerRule) *string { return &p.Name }, text{}),
			key("namespaces", "Whose blocks the peer may read.",
				func(p *PeerRule) *[]PeerSpace { return &p.Namespaces },
				many[PeerSpace]{item: peerSpace()}),
			opt("all", "The peer may read every block of everybody, by shared memory too.",
				func(p *PeerRule) *bool { return &p.All }, yesNo{}),
		},
		check: func(r *reader, n *node, at *path, p *PeerRule) {
			switch {
			case n.shape != mapping:
			case (p.UID != nil) == (p.Name != ""):
				r.add(n.line, n.col, at, "needs either uid or name")
			case !p.All && len(p.Namespaces) == 0:
				r.add(n.line, n.col, at, "lets the peer read nothing: set namespaces, or all")
			}
		},
	}
}

func peerSpace() object[PeerSpace] {
	return object[PeerSpace]{fields: []field[PeerSpace]{
		opt("tenant", "Tenant of the blocks. Default: the empty one.",
			func(p *PeerSpace) *string { return &p.Tenant }, text{}),
		opt("namespace", "What the blocks are of, as engines and routers call it: model, data type, layout, salt. Default: the empty one.",
			func(p *PeerSpace) *string { return &p.Namespace }, text{}),
	}}
}

func peerSocket() object[PeerSocket] {
	return object[PeerSocket]{fields: []field[PeerSocket]{
		key("source", "Source endpoint, exactly as kvrt writes it: tcp://127.0.0.1:23280.",
			func(p *PeerSocket) *string { return &p.Source }, endpoint()).must(),
		key("path", "Path of its Unix socket.",
			func(p *PeerSocket) *string { return &p.Path }, socketPath()).must(),
	}}
}

// filePath is a path, relative to the folder of the file.
func filePath() text { return text{adapt: (*reader).resolve} }
