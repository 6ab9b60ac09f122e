// Package databasetest tests the leases of bywash for Go with real drivers, real databases and the
// real daemon.
//
// It is a module of its own, since the SDK has no dependencies. scripts/test-sdk-databases runs it.
package databasetest

// The daemon: bywash stopd, with a socket and a configuration of its own.

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// patience is the maximum time of a wait. A longer wait fails the test.
const patience = 30 * time.Second

type daemon struct {
	t       testing.TB
	command *exec.Cmd
	socket  string
	admin   string
}

// program returns the path of the daemon's program. Without one it skips the test.
func program(t testing.TB) string {
	path, isSaid := os.LookupEnv("BYWASH")
	if !isSaid {
		path = "../../../target/debug/bywash"
	}
	if _, err := os.Stat(path); err != nil && isSaid {
		t.Fatal(err)
	} else if err != nil {
		t.Skip("NOT TESTED: there is no target/debug/bywash, and BYWASH is not set")
	}
	return path
}

// start starts a daemon that knows the database of this kind under the name `shop`. The settings are
// further lines of the database's section.
func start(t testing.TB, of kind, settings ...string) *daemon {
	t.Helper()
	// The names of t.TempDir are too long for a socket.
	folder, err := os.MkdirTemp("", "stopd")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	d := &daemon{t: t, socket: filepath.Join(folder, "stopd.sock")}
	password := filepath.Join(folder, "password")
	write(t, password, "lab\n")
	config := filepath.Join(folder, "bywash.toml")
	write(t, config, fmt.Sprintf(`
version = 1
[stopd]
socket = %q
mode = "enforce"
[database.shop]
server = "%s://stopd@%s/shop"
password_file = %q
statements_per_second = 10000
%s
`, d.socket, of.scheme, of.address(t), password, strings.Join(settings, "\n")))
	d.command = exec.Command(program(t), "stopd", "--config", config, "--admin", "127.0.0.1:0")
	said, err := d.command.StderrPipe()
	must(t, err)
	must(t, d.command.Start())
	t.Cleanup(d.dies)
	lines, heard := bufio.NewScanner(said), ""
	for d.admin == "" && lines.Scan() {
		heard += lines.Text() + "\n"
		if found := regexp.MustCompile(`operators at http://(\S+)`).FindStringSubmatch(lines.Text()); found != nil {
			d.admin = found[1]
		}
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	if d.admin == "" {
		t.Fatal("the daemon does not start: ", heard)
	}
	return d
}

func write(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(text), 0o600))
}

// dies kills the daemon process, as in a crash.
func (d *daemon) dies() {
	if d.command.ProcessState == nil {
		_ = d.command.Process.Kill()
		_ = d.command.Wait()
	}
}

// number returns the value of one of the daemon's metrics; 0 if it has not been counted yet.
func (d *daemon) number(name string) float64 {
	response, err := http.Get("http://" + d.admin + "/metrics")
	if err != nil {
		d.t.Error(err)
		return 0
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if rest, is := strings.CutPrefix(lines.Text(), name+" "); is {
			number, err := strconv.ParseFloat(rest, 64)
			check(d.t, err)
			return number
		}
	}
	return 0
}

const leases = "bywash_stopd_leases"

// A `voice` is a conversation with the daemon, in the role of a gateway or of another application.
type voice struct {
	d      *daemon
	stream net.Conn
	lines  *bufio.Reader
}

var numbers atomic.Uint64

func (d *daemon) voice() *voice {
	stream, err := net.Dial("unix", d.socket)
	must(d.t, err)
	d.t.Cleanup(func() { _ = stream.Close() })
	return &voice{d, stream, bufio.NewReader(stream)}
}

// ask sends a line and returns the answer without its number.
func (v *voice) ask(command string) string {
	v.say(command)
	line, err := v.lines.ReadString('\n')
	check(v.d.t, err)
	_, line, _ = strings.Cut(strings.TrimSpace(line), " ")
	return line
}

func (v *voice) say(command string) {
	_, err := fmt.Fprintf(v.stream, "%d %s\n", numbers.Add(1), command)
	check(v.d.t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// until waits until holds returns true, because another process has done something. It fails the
// test with the message what if that takes too long.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}
