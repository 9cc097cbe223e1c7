// Package hashing computes digests of files.
package hashing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
)

const blockBytes = 64 << 10

// ErrFolder reports a path that is a folder.
var ErrFolder = errors.New("path is a folder")

// File returns the SHA-256 digest of a file in hexadecimal. It stops between two blocks if ctx is done.
func File(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return "", ErrFolder
	}
	hash := sha256.New()
	block := make([]byte, blockBytes)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := file.Read(block)
		hash.Write(block[:n])
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(hash.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}
