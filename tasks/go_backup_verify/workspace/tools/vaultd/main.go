// Command vaultd serves the chunks of a vault. docs/protocol.md describes its protocol.
//
// The environment variable VAULTD_DRILL makes it behave as on a bad day, for drills: `busy=N` answers busy to each N-th GET,
// `limit=N` allows N requests in a session, `notice=N` sends a notice before each N-th line. Several ones are separated by commas.
package main

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	exitProtocol = 3
	exitReceipt  = 4

	tokenBytes = 16
)

// header begins the file of each chunk.
var header = []byte("VC1\n")

var errDamaged = errors.New("chunk is damaged")

type server struct {
	vault   string
	in      *bufio.Reader
	out     *bufio.Writer
	drill   map[string]int
	receipt string
	gets    int
	lines   int
	sent    int
}

func main() {
	vault := flag.String("vault", "", "folder of the vault")
	flag.Parse()
	s := &server{vault: *vault, in: bufio.NewReader(os.Stdin), out: bufio.NewWriter(os.Stdout), drill: drill(os.Getenv("VAULTD_DRILL"))}
	code := s.serve()
	s.out.Flush()
	os.Exit(code)
}

func drill(text string) map[string]int {
	values := map[string]int{}
	for _, part := range strings.Split(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		values[name], _ = strconv.Atoi(value)
	}
	return values
}

func (s *server) line(format string, args ...any) {
	s.lines++
	if every := s.drill["notice"]; every > 0 && s.lines%every == 0 {
		fmt.Fprintf(s.out, "* the store is under maintenance (%d)\n", s.lines)
	}
	fmt.Fprintf(s.out, format+"\n", args...)
}

func (s *server) read() (string, bool) {
	s.out.Flush()
	line, err := s.in.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err == nil
}

func (s *server) serve() int {
	s.line("VAULT 2")
	if hello, ok := s.read(); !ok || hello != "HELLO verify" {
		return exitProtocol
	}
	token := make([]byte, tokenBytes)
	rand.Read(token)
	s.receipt = hex.EncodeToString(token)
	s.line("SESSION %s", s.receipt)
	for number := 1; ; number++ {
		line, ok := s.read()
		if !ok {
			return 0
		}
		parts := strings.Split(line, " ")
		if len(parts) != 3 || parts[0] != strconv.Itoa(number) {
			return exitProtocol
		}
		switch parts[1] {
		case "GET":
			s.get(number, parts[2])
		case "CLOSE":
			if parts[2] != s.receipt {
				return exitReceipt
			}
			s.line("%d BYE %d", number, s.sent)
			s.out.Flush()
			if _, ok := s.read(); ok {
				return exitProtocol
			}
			return 0
		default:
			return exitProtocol
		}
	}
}

func (s *server) get(number int, id string) {
	s.gets++
	if limit := s.drill["limit"]; limit > 0 && s.gets > limit {
		s.line("%d ERR limit", number)
		return
	}
	if every := s.drill["busy"]; every > 0 && s.gets%every == 0 {
		s.line("%d ERR busy", number)
		return
	}
	content, err := s.load(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.line("%d ERR not_found", number)
		return
	case err != nil:
		s.line("%d ERR damaged", number)
		return
	}
	sum := fmt.Sprintf("%08x", crc32.ChecksumIEEE(content))
	s.line("%d DATA %d %s", number, len(content), sum)
	s.out.Write(content)
	s.out.WriteByte('\n')
	digest := sha256.Sum256(fmt.Appendf(nil, "%s %d %s %d %s", s.receipt, number, id, len(content), sum))
	s.receipt = hex.EncodeToString(digest[:])
	s.sent++
	s.line("%d RECEIPT %s", number, s.receipt)
}

// load returns the content of a chunk.
func (s *server) load(id string) ([]byte, error) {
	if len(id) < 3 || strings.ContainsAny(id, "/.") {
		return nil, fs.ErrNotExist
	}
	stored, err := os.ReadFile(filepath.Join(s.vault, "chunks", id[:2], id[2:]))
	if err != nil {
		return nil, err
	}
	packed, ok := bytes.CutPrefix(stored, header)
	if !ok {
		return nil, errDamaged
	}
	reader, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, errDamaged
	}
	return io.ReadAll(reader)
}
