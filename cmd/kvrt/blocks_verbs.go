package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kvrt/kvrt/hint"
	"github.com/kvrt/kvrt/hosts/store"
	"github.com/kvrt/kvrt/server"
)

func newBlocksVerb() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "blocks",
		Short: "Put blocks into the daemon's block store, and get them out",
		Long: `blocks copies one block into the block store of a running daemon, or out of it. It is
for tests and tools: an engine's blocks do not go this way.

A block is known by its tenant, its namespace and its hash. HASH is a number from 0 to
2^64-1, in decimal or, after 0x, in hexadecimal.`,
		Example: `  kvrt blocks put 7 block.bin --tenant a --namespace llama
  kvrt blocks get 7 out.bin --tenant a --namespace llama
  head -c 65536 /dev/urandom | kvrt blocks put 0xff -`,
		Args: noVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newBlocksPut(), newBlocksGet())
	return cmd
}

// spaceFlags say whose blocks are meant.
type spaceFlags struct{ tenant, namespace string }

func (f *spaceFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.tenant, "tenant", "", "tenant that the blocks belong to")
	cmd.Flags().StringVar(&f.namespace, "namespace", "", "what makes blocks alike: model, data type, layout, salt")
}

func (f *spaceFlags) String() string {
	return fmt.Sprintf("tenant %q, namespace %q", f.tenant, f.namespace)
}

// parseHash reads the hash of a block.
func parseHash(cmd *cobra.Command, s string) (uint64, error) {
	base, digits := 10, s
	if hex, ok := strings.CutPrefix(strings.ToLower(s), "0x"); ok {
		base, digits = 16, hex
	}
	h, err := strconv.ParseUint(digits, base, 64)
	if err != nil {
		return 0, &usageError{cmd.CommandPath(), fmt.Sprintf("%q is no hash of a block: want a number from 0 to 2^64-1, such as 7 or 0xff", s)}
	}
	return h, nil
}

func parseHashes(cmd *cobra.Command, words []string) ([]uint64, error) {
	var hashes []uint64
	for _, s := range words {
		h, err := parseHash(cmd, s)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, h)
	}
	return hashes, nil
}

// blockTold is what put and get tell of a block.
type blockTold struct {
	Hash      uint64 `json:"hash"`
	Tenant    string `json:"tenant"`
	Namespace string `json:"namespace"`
	Bytes     int    `json:"bytes"`
	SHA256    string `json:"sha256"`
	Stored    *bool  `json:"stored,omitempty"` // put: false when the block was there already
	File      string `json:"file,omitempty"`   // get
}

func (f *spaceFlags) told(hash uint64, block []byte) blockTold {
	return blockTold{Hash: hash, Tenant: f.tenant, Namespace: f.namespace, Bytes: len(block), SHA256: fmt.Sprintf("%x", sha256.Sum256(block))}
}

func newBlocksPut() *cobra.Command {
	var (
		space  spaceFlags
		client clientFlags
		output string
	)
	cmd := &cobra.Command{
		Use:   "put HASH FILE|-",
		Short: "Put a block into the store",
		Long: `put copies FILE, or standard input, into the block store as the block with this hash. A
block that is there already stays as it is, which is no error.

Code 4: the store has no room for the block or no slots of its size, or the block is
larger than a frame of the socket may be (8 MiB unless limits.body_bytes says more).`,
		Example: `  kvrt blocks put 7 block.bin --tenant a --namespace llama
  head -c 65536 /dev/urandom | kvrt blocks put 0xff -
  kvrt blocks put 7 block.bin -o json | jq .stored`,
		Args: arguments("HASH", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			hash, err := parseHash(cmd, args[0])
			if err != nil {
				return err
			}
			block, err := readInput(cmd, args[1], maxSubmit)
			var large *hint.MalformedError
			if errors.As(err, &large) {
				err = &inputError{fmt.Errorf("%s is larger than any block, of which %d bytes are the most", args[1], maxSubmit)}
			}
			if err != nil {
				return err
			}
			if len(block) == 0 {
				return &inputError{fmt.Errorf("%s is empty: a block has one byte at least", args[1])}
			}
			return client.with(cmd, func(ctx context.Context, c *server.Client) error {
				stored, err := c.PutBlock(ctx, space.tenant, space.namespace, hash, block)
				if refused := (*server.RemoteError)(nil); errors.As(err, &refused) && refused.Text == store.ErrTooLarge.Error() {
					return fmt.Errorf("%w: %d bytes; store.block_bytes of its configuration names the sizes", err, len(block))
				}
				if err != nil {
					return err
				}
				t := space.told(hash, block)
				t.Stored = &stored
				if output == "json" {
					return writeJSONLine(cmd.OutOrStdout(), t)
				}
				line := fmt.Sprintf("stored block %d: %d bytes, sha256 %s", hash, t.Bytes, shortDigest(t.SHA256))
				if !stored {
					line = fmt.Sprintf("block %d was there already, and stays as it is", hash)
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), line)
				return err
			})
		},
	}
	space.add(cmd)
	client.add(cmd.Flags())
	choose(cmd, &output, "output", "o", "form of what is told about the block", "table", "json")
	return cmd
}

func newBlocksGet() *cobra.Command {
	var (
		space  spaceFlags
		client clientFlags
		output string
	)
	cmd := &cobra.Command{
		Use:   "get HASH FILE|-",
		Short: "Get a block out of the store",
		Long: `get copies a block to FILE, which appears complete or not at all, or to standard output;
what is told about the block then goes to standard error.

Code 1: the daemon does not have the block.`,
		Example: `  kvrt blocks get 7 out.bin --tenant a --namespace llama
  kvrt blocks get 7 - --tenant a --namespace llama | sha256sum
  kvrt blocks get 0xff out.bin -o json | jq -r .sha256`,
		Args: arguments("HASH", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			hash, err := parseHash(cmd, args[0])
			if err != nil {
				return err
			}
			if args[1] == "-" && isTerminal(cmd.OutOrStdout()) {
				return &usageError{cmd.CommandPath(), "a block is binary and standard output is a terminal: redirect it, or name a file"}
			}
			return client.with(cmd, func(ctx context.Context, c *server.Client) error {
				block, err := c.GetBlock(ctx, space.tenant, space.namespace, hash)
				if errors.Is(err, server.ErrNoBlock) {
					return &listed{exitWrong, []string{fmt.Sprintf("kvrt: the daemon does not have block %d of %s", hash, &space)}}
				}
				if err != nil {
					return err
				}
				t, tell := space.told(hash, block), cmd.OutOrStdout()
				if args[1] == "-" {
					tell = cmd.ErrOrStderr()
					_, err = cmd.OutOrStdout().Write(block)
				} else {
					t.File = args[1]
					err = writeFile(args[1], block)
				}
				if err != nil {
					return err
				}
				if output == "json" {
					return writeJSONLine(tell, t)
				}
				_, err = fmt.Fprintf(tell, "block %d: %d bytes, sha256 %s\n", hash, t.Bytes, shortDigest(t.SHA256))
				return err
			})
		},
	}
	space.add(cmd)
	client.add(cmd.Flags())
	choose(cmd, &output, "output", "o", "form of what is told about the block", "table", "json")
	return cmd
}

func newDescribe() *cobra.Command {
	var (
		id        identityFlags
		space     spaceFlags
		client    clientFlags
		blockSize uint32
	)
	cmd := &cobra.Command{
		Use:   "describe REQUEST-ID [HASH...]",
		Short: "Tell the daemon which blocks a request has",
		Long: `describe says what an engine says before it submits hints that speak of a request's
tokens, or of its blocks without naming them: whose blocks they are, how many tokens a
block has, and the hashes of the request's full blocks from the first token on. It is
kept until the request has ended, for 10 minutes at most, and a later description takes
its place.

The flags must be those of the submit. Code 4: it is not kept, since all requests
together have too many blocks.`,
		Example: `  kvrt describe r1 11 12 13 --block-size 16 --tenant a --namespace llama
  kvrt describe r1 --engine vllm --leg prefill --namespace llama`,
		Args: func(cmd *cobra.Command, args []string) error {
			return arguments("REQUEST-ID")(cmd, args[:min(len(args), 1)])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			id.requestID = args[0]
			hashes, err := parseHashes(cmd, args[1:])
			if err != nil {
				return err
			}
			if blockSize > 1<<31-1 {
				return &usageError{cmd.CommandPath(), "--block-size is at most 2147483647 tokens"}
			}
			d := server.Description{Tenant: space.tenant, Namespace: space.namespace, BlockSize: int(blockSize), Hashes: hashes}
			return client.with(cmd, func(ctx context.Context, c *server.Client) error {
				kept, err := c.Describe(ctx, id.identity(), d)
				if err == nil && !kept {
					err = &listed{exitRefused, []string{"kvrt: the description is not kept: the requests that are described have too many blocks together, or the request id is empty"}}
				}
				return err
			})
		},
	}
	id.add(cmd)
	space.add(cmd)
	client.add(cmd.Flags())
	cmd.Flags().Uint32Var(&blockSize, "block-size", 0, "tokens of a block")
	return cmd
}
