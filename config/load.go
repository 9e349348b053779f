package config

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Load reads the file at path and makes relative paths in it relative to its folder. The
// error is an [*Error] when the file could be read.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return parse(path, data, dir)
}

// Parse reads a configuration from data; name stands for it in messages. Relative paths
// stay as they are. The error is an [*Error].
func Parse(name string, data []byte) (*Config, error) {
	return parse(name, data, "")
}

func parse(name string, data []byte, base string) (*Config, error) {
	r := &reader{report: &report{file: name}, base: base}
	if len(data) > maxFile {
		r.add(0, 0, nil, "the file is longer than %s", Size(maxFile))
		return nil, r.err()
	}
	root := parseTree(data, r.report, os.LookupEnv)
	if root == nil {
		return nil, r.err()
	}
	c := Default()
	c.file, c.root = name, root
	spec().decode(r, root, nil, c)
	if err := r.err(); err != nil {
		return nil, err
	}
	return c, nil
}
