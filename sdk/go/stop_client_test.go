package bywash

// Tests of the conversation with the daemon, with a fake one. The lines, and what follows from its
// answers: conformance_steps_test.go. Tests with the real daemon and real databases: databasetest.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A `desk` is a fake daemon that answers each line with what reply returns: nothing, one line or
// several. A line that begins with a space gets the number of the question.
type desk struct {
	socket string
	reply  func(words []string) []string
	mutex  sync.Mutex
	heard  []string
	spoken []net.Conn
}

func open(t *testing.T, reply func(words []string) []string) *desk {
	t.Helper()
	// The names of t.TempDir are too long for a socket.
	folder, err := os.MkdirTemp("", "desk")
	must(t, err)
	d := &desk{socket: filepath.Join(folder, "s"), reply: reply}
	listener, err := net.Listen("unix", d.socket)
	must(t, err)
	t.Cleanup(func() {
		listener.Close()
		d.hangUp()
		os.RemoveAll(folder)
	})
	go func() {
		for {
			stream, err := listener.Accept()
			if err != nil {
				return
			}
			d.mutex.Lock()
			d.spoken = append(d.spoken, stream)
			d.mutex.Unlock()
			go d.serve(stream)
		}
	}()
	return d
}

func (d *desk) serve(stream net.Conn) {
	lines := bufio.NewScanner(stream)
	for lines.Scan() {
		number, command, _ := strings.Cut(lines.Text(), " ")
		d.mutex.Lock()
		d.heard = append(d.heard, command)
		for _, answer := range d.reply(strings.Fields(command)) {
			if answer[0] == ' ' {
				answer = number + answer
			}
			fmt.Fprintln(stream, answer)
		}
		d.mutex.Unlock()
	}
}

func (d *desk) hangUp() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, stream := range d.spoken {
		stream.Close()
	}
}

// says returns the lines that the fake daemon has received, without the times at which leases end.
func (d *desk) says() string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	var said []string
	for _, command := range d.heard {
		command, _, _ = strings.Cut(command, " not-after=")
		said = append(said, command)
	}
	return strings.Join(said, "; ")
}

func agrees([]string) []string { return []string{" OK"} }

// named begins a request of this name.
func named(t *testing.T, c *Controller, name string) (context.Context, *Token) {
	t.Helper()
	token := begin(t, c, never)
	token.Bring(http.Header{RequestHeader: {name}})
	t.Cleanup(token.End)
	return token.In(context.Background()), token
}

func TestALeaseIsReleasedOnce(t *testing.T) {
	d := open(t, agrees)
	s := NewStopClient(d.socket)
	c, _ := search(t)
	ctx, _ := named(t, c, "r1")
	lease, err := s.Lease(ctx, "shop", 4711)
	must(t, err)
	if !lease.Release() || !lease.Release() {
		t.Error("it is in doubt")
	}
	if said := d.says(); said != "LEASE r1 shop 4711; RELEASE r1 shop 4711" {
		t.Error(said)
	}
}

func TestAWrongSetUpIsSaidOnce(t *testing.T) {
	var said strings.Builder
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	s := NewStopClient(t.TempDir() + "/nobody")
	c, _ := search(t)
	for i := 0; i < 3; i++ {
		_, err := s.Lease(context.Background(), "shop", 1)
		must(t, err)
		token := begin(t, c, never)
		token.Bring(http.Header{RequestHeader: {"5f1c"}})
		_, err = s.Lease(token.In(context.Background()), "shop", 1)
		must(t, err)
	}
	for _, one := range []string{"outside of a named request", "no stop daemon answers at"} {
		if strings.Count(said.String(), one) != 1 {
			t.Error(said.String())
		}
	}
	if s.Stats() != (StopClientStats{Unnamed: 3, Unreachable: 3}) {
		t.Error(s.Stats())
	}
}

func TestTheFirstRefusalIsSaidInTheDaemonsWords(t *testing.T) {
	var said strings.Builder
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	const unknown = "ERR unknown_database there is no [database.shop]\x1b[31m"
	d := open(t, func(words []string) []string {
		switch {
		case words[0] == "STOP":
			return []string{" ERR forbidden add this user to stopd.stops"}
		case words[2] == "shop":
			return []string{" " + unknown + strings.Repeat("é", 2*longestRefusal)}
		}
		return []string{" OK"}
	})
	s := NewStopClient(d.socket)
	c, _ := search(t)
	for i := 0; i < 3; i++ {
		ctx, token := named(t, c, fmt.Sprint("r", i))
		// Only a request that has leased something sends a stop.
		for _, database := range []string{"known", "shop"} {
			_, err := s.Lease(ctx, database, 1)
			must(t, err)
		}
		token.Leave()
	}
	until(t, func() bool { return s.Stats().Refused == 6 })
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != 2 {
		t.Fatal(said.String())
	}
	for i, text := range []string{
		`refuses a lease and answers "ERR unknown_database there is no [database.shop]\x1b[31m\u00e9`,
		`refuses a stop and answers "ERR forbidden add this user to stopd.stops"`,
	} {
		if !strings.Contains(lines[i], d.socket+" "+text) {
			t.Error(lines[i])
		}
	}
	if strings.Count(lines[0], `\u00e9`) != longestRefusal-len(unknown) {
		t.Error("the text is not bounded:", lines[0])
	}
}

func TestAStopThatComesTooLateIsNotLogged(t *testing.T) {
	var said strings.Builder
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	var token *Token
	d := open(t, func(words []string) []string {
		must(t, token.CancelTermination())
		return []string{" STOPPED client_left"}
	})
	s := NewStopClient(d.socket)
	c, _ := search(t)
	ctx, own := named(t, c, "r1")
	token = own
	_, err := s.Lease(ctx, "shop", 1)
	must(t, err)
	if s.Stats().Refused != 1 || said.Len() != 0 {
		t.Errorf("%+v: %s", s.Stats(), said.String())
	}
}

func TestAfterAConversationThatIsOverThereIsANewOne(t *testing.T) {
	d := open(t, func(words []string) []string {
		if words[1] == "silent" {
			return nil
		}
		return []string{" OK"}
	})
	s := NewStopClient(d.socket)
	c, _ := search(t)
	silent, _ := named(t, c, "silent")
	unanswered, err := s.Lease(silent, "shop", 2)
	must(t, err)
	if unanswered.Release() {
		t.Error("it is taken for good")
	}
	until(t, func() bool { return s.current.Load() == nil })
	s.notBefore.Store(0)
	ctx, _ := named(t, c, "r1")
	again, err := s.Lease(ctx, "shop", 1)
	must(t, err)
	if !again.Release() {
		t.Error("there is no new conversation")
	}
}

func TestNobodyConnectsBeforeItIsTime(t *testing.T) {
	s := NewStopClient(filepath.Join(t.TempDir(), "nobody"))
	c, _ := search(t)
	ctx, _ := named(t, c, "r1")
	for i := 0; i < 3; i++ {
		lease, err := s.Lease(ctx, "shop", 1)
		must(t, err)
		if !lease.Release() {
			t.Error("nobody can have aimed at it")
		}
	}
	if s.notBefore.Load() == 0 || s.Stats() != (StopClientStats{Unreachable: 3}) {
		t.Errorf("%+v", s.Stats())
	}
	// The daemon is there again, but the pause is not over.
	d := open(t, agrees)
	s.socket = d.socket
	s.notBefore.Store(int64(time.Hour))
	_, err := s.Lease(ctx, "shop", 1)
	must(t, err)
	if d.says() != "" {
		t.Error(d.says())
	}
	s.notBefore.Store(0)
	_, err = s.Lease(ctx, "shop", 1)
	must(t, err)
	if s.Stats().Leased != 1 {
		t.Errorf("%+v", s.Stats())
	}
}

func TestAnswersMayComeInAnyOrder(t *testing.T) {
	var late []string
	d := open(t, func(words []string) []string {
		// Answer two lines at a time, in reverse order.
		late = append(late, fmt.Sprintf("%d STOPPED %s", len(late)+1, words[1]))
		if len(late)%2 == 1 {
			return nil
		}
		return []string{late[len(late)-1], late[len(late)-2]}
	})
	s := NewStopClient(d.socket)
	c, _ := search(t)
	var group sync.WaitGroup
	for i := 0; i < 100; i++ {
		reason := []Reason{ClientLeft, Deadline, RanTooLong}[i%3]
		ctx, _ := named(t, c, string(reason))
		group.Add(1)
		go func() {
			defer group.Done()
			_, err := s.Lease(ctx, "shop", 1)
			var over *Terminated
			if !errors.As(err, &over) || over.Reason != reason {
				t.Error(err)
			}
		}()
	}
	group.Wait()
}

// The daemon does not remember a stop with scope=own: a later lease would not be stopped.
func TestNothingIsLeasedAfterTheStopOfItsRequest(t *testing.T) {
	d := open(t, agrees)
	s := NewStopClient(d.socket)
	c, _ := search(t)
	var group sync.WaitGroup
	for i := 0; i < 500; i++ {
		ctx, token := named(t, c, fmt.Sprint("r", i))
		group.Add(2)
		go func() {
			defer group.Done()
			for connection := uint64(1); connection < 4; connection++ {
				var over *Terminated
				if _, err := s.Lease(ctx, "shop", connection); err != nil && !errors.As(err, &over) {
					t.Error(err)
				}
			}
		}()
		go func() {
			defer group.Done()
			token.Leave()
		}()
	}
	group.Wait()
	isStopped := map[string]bool{}
	for _, command := range strings.Split(d.says(), "; ") {
		words := strings.Fields(command)
		if len(words) == 0 {
			// Every client left before its query: no line was sent.
			continue
		}
		if words[0] == "LEASE" && isStopped[words[1]] {
			t.Error(words[1], "leases although its stop was said")
		}
		isStopped[words[1]] = isStopped[words[1]] || words[0] == "STOP"
	}
}

func TestALeaseOfOnesOwnIsTold(t *testing.T) {
	d := open(t, agrees)
	s := NewStopClient(d.socket)
	c, _ := search(t)
	ctx, token := named(t, c, "r1")
	own, lease, err := s.Own(ctx)
	must(t, err)
	fmt.Fprintln(d.spoken[0], "0 STOPPED r1 deadline 1")
	<-own.Done()
	var over *Terminated
	if !errors.As(context.Cause(own), &over) || over.Reason != Deadline || ctx.Err() != nil {
		t.Error(context.Cause(own), ctx.Err())
	}
	ends(t, token, Deadline)
	if !lease.Release() {
		t.Error("what is told of its end stops, and nothing else")
	}
}
