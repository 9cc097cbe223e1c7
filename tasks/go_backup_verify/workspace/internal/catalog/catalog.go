// Package catalog reads the catalog of a vault.
package catalog

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Version is the version of catalogs that this package reads.
const Version = 1

const idBytes = 32

// Catalog lists the backups of a vault.
type Catalog struct {
	Version int      `json:"version"`
	Backups []Backup `json:"backups"`
}

// Backup is a set of files.
type Backup struct {
	ID    string `json:"id"`
	Files []File `json:"files"`
}

// File is a file of a backup.
type File struct {
	Path   string  `json:"path"`
	Size   int64   `json:"size"`
	Digest string  `json:"digest"`
	Chunks []Chunk `json:"chunks"`
}

// Chunk is a part of a file.
type Chunk struct {
	ID   string `json:"id"`
	Size int64  `json:"size"`
}

// Read reads the catalog of a vault.
func Read(vault string) (*Catalog, error) {
	path := filepath.Join(vault, "catalog.json")
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var c Catalog
	if err := json.Unmarshal(content, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if c.Version != Version {
		return nil, fmt.Errorf("%s: version is %d instead of %d", path, c.Version, Version)
	}
	for _, b := range c.Backups {
		for _, f := range b.Files {
			for _, chunk := range f.Chunks {
				if !isID(chunk.ID) {
					return nil, fmt.Errorf("%s: `%s` is no id", path, chunk.ID)
				}
			}
		}
	}
	return &c, nil
}

func isID(text string) bool {
	bytes, err := hex.DecodeString(text)
	return err == nil && len(bytes) == idBytes && hex.EncodeToString(bytes) == text
}
