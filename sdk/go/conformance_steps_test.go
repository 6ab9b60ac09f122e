package bywash

// Tests that run the sequences and the transcripts of sdk/conformance, with a fake daemon. Its
// README.md lists their steps.

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// flat returns the steps, with repeated ones as often as they are repeated.
func flat(steps []any) [][]any {
	var all [][]any
	for _, one := range steps {
		step := one.([]any)
		if step[0] != "repeat" {
			all = append(all, step)
			continue
		}
		repeated := flat(step[2].([]any))
		for i := 0; i < int(step[1].(float64)); i++ {
			all = append(all, repeated...)
		}
	}
	return all
}

// span returns the time of an argument in milliseconds; null is never.
func span(argument any) time.Duration {
	milliseconds, isOne := argument.(float64)
	if !isOne {
		return never
	}
	return micros(milliseconds)
}

// walker has a controller, its clock and its requests, for the steps of one vector.
type walker struct {
	t          *testing.T
	controller *Controller
	clock      *clock
	tokens     map[string][]*Token
}

func walk(t *testing.T) *walker {
	t.Helper()
	c, clock := search(t)
	return &walker{t, c, clock, map[string][]*Token{}}
}

func (w *walker) does(name string, args []any) {
	w.t.Helper()
	switch name {
	case "go":
		w.clock.goes(span(args[0]))
	case "arrived":
		load(w.t, w.controller, int(args[0].(float64)), 0)
	case "lost":
		load(w.t, w.controller, 0, int(args[0].(float64)))
	case "begin":
		w.begins(args[0].(string), args[1:])
	case "threshold":
		threshold, err := w.controller.Threshold(args[0].(string))
		must(w.t, err)
		w.isAbout(threshold, args[1])
	case "stats":
		w.hasStats(args[0].(map[string]any))
	default:
		tokens, areSome := w.tokens[args[0].(string)]
		if !areSome {
			w.t.Fatal("no request is called", args[0])
		}
		for _, token := range tokens {
			w.doesWith(token, name, args[1:])
		}
	}
}

func (w *walker) begins(name string, args []any) {
	w.t.Helper()
	left, count := never, 1
	if len(args) > 0 {
		left = span(args[0])
	}
	if len(args) > 1 {
		count = int(args[1].(float64))
	}
	w.tokens[name] = nil
	for i := 0; i < count; i++ {
		token := begin(w.t, w.controller, left)
		token.Bring(http.Header{RequestHeader: {name}})
		w.tokens[name] = append(w.tokens[name], token)
	}
}

func (w *walker) doesWith(token *Token, name string, args []any) {
	w.t.Helper()
	switch name {
	case "settle":
		token.Settle()
	case "leave":
		token.Leave()
	case "end":
		token.End()
	case "checkpoint":
		w.passes(token, token.Checkpoint(), args[0])
	case "cancel_termination":
		w.passes(token, token.CancelTermination(), args[0])
	case "is_terminated":
		if token.IsTerminated() != args[0].(bool) {
			w.t.Fatal("it is not", args[0])
		}
	case "reason":
		if reason, _ := args[0].(string); token.Reason() != Reason(reason) {
			w.t.Fatal(token.Reason(), "is not", args[0])
		}
	case "left":
		w.isAbout(token.Left(), args[0])
	case "due":
		due := never
		if at, isBound := token.Deadline(); isBound {
			due = at.Sub(w.controller.epoch)
		}
		w.isAbout(due, args[0])
	default:
		w.t.Fatal("no step is called", name)
	}
}

// passes checks that a call has returned no error, or that of a request that is over.
func (w *walker) passes(token *Token, err error, expected any) {
	w.t.Helper()
	reason, isOver := expected.(string)
	if !isOver {
		if err != nil || token.IsTerminated() {
			w.t.Fatal("it is over", err)
		}
		return
	}
	var terminated *Terminated
	if !errors.As(err, &terminated) || terminated.Reason != Reason(reason) {
		w.t.Fatal(err, "is not", reason)
	}
	ends(w.t, token, Reason(reason))
}

// isAbout compares times to 100 ns.
func (w *walker) isAbout(time time.Duration, expected any) {
	w.t.Helper()
	if distance := time - span(expected); distance < -100 || distance > 100 {
		w.t.Fatal(time, "is not", span(expected))
	}
}

func (w *walker) hasStats(expected map[string]any) {
	w.t.Helper()
	stats := w.controller.Stats()["search"]
	numbers := map[string]float64{
		"arrived": float64(stats.Arrived), "lost": float64(stats.Lost), "terminated": float64(stats.Terminated),
		"deadline": float64(stats.Deadline), "client_left": float64(stats.ClientLeft),
		"deferred": float64(stats.Deferred), "running": float64(stats.Running), "p": stats.P,
	}
	for name, value := range expected {
		if number, isOne := numbers[name]; !isOne || math.Abs(number-value.(float64)) > 1e-9 {
			w.t.Fatalf("%s is not %v: %+v", name, value, stats)
		}
	}
}

type sequence struct {
	anyVector
	Steps []any
}

func TestSequencesAreThoseOfTheKit(t *testing.T) {
	for _, vector := range vectors[sequence](t, "controller.json", "sequences") {
		steps := flat(vector.Steps)
		t.Run(vector.Why, func(t *testing.T) {
			w := walk(t)
			for _, step := range steps {
				w.does(step[0].(string), step[1:])
			}
		})
	}
}

type transcript struct {
	anyVector
	Answers map[string]*string
	Daemon  *bool
	Steps   []any
}

// leases has a fake daemon and the leases of one transcript.
type leases struct {
	*walker
	desk       *desk
	stopClient *StopClient
	held       map[string]*Lease
	// The mutex of the desk guards these: its answers, and a step before it answers the next LEASE.
	answers   map[string]*string
	meanwhile []any
	// How many lines have been checked, and the time of the last lease.
	checked       int
	before, after time.Time
}

// reply returns the daemon's answer to a line; a space in front stands for its number.
func (l *leases) reply(words []string) []string {
	if step := l.meanwhile; step != nil && words[0] == "LEASE" {
		l.meanwhile = nil
		l.walker.does(step[0].(string), step[1:])
	}
	answer, isOne := l.answers[words[0]+" "+words[1]]
	if !isOne {
		answer, isOne = l.answers[words[0]]
	}
	if !isOne {
		return []string{" OK"}
	}
	if answer == nil {
		return nil
	}
	return strings.Split(strings.Replace(*answer, "N", "", 1), "\n")
}

func (l *leases) does(name string, args []any) {
	l.t.Helper()
	switch name {
	case "begin_nameless":
		l.tokens[args[0].(string)] = []*Token{begin(l.t, l.controller, never)}
	case "lease":
		l.lease(args[0].(string), args[1], uint64(args[2].(float64)), args[3].(string))
	case "release":
		if isGood := l.held[args[0].(string)].Release(); isGood != (args[1] == "kept") {
			l.t.Fatal("it is not", args[1])
		}
	case "cancelled":
		l.cancelled(args[0].(string), args[1])
	case "answers":
		l.desk.mutex.Lock()
		defer l.desk.mutex.Unlock()
		for words, answer := range args[0].(map[string]any) {
			text := answer.(string)
			l.answers[words] = &text
		}
	case "meanwhile":
		l.desk.mutex.Lock()
		defer l.desk.mutex.Unlock()
		l.meanwhile = args[0].([]any)
	case "lines":
		l.says(args[0].([]any))
	case "not_after":
		l.lasts(args[0])
	case "stats":
		l.hasStats(args[0].(map[string]any))
	default:
		l.walker.does(name, args)
	}
}

func (l *leases) lease(name string, request any, connection uint64, outcome string) {
	l.t.Helper()
	ctx := context.Background()
	if of, isOne := request.(string); isOne {
		ctx = l.tokens[of][0].In(ctx)
	}
	l.before = time.Now()
	lease, err := l.stopClient.Lease(ctx, "shop", connection)
	l.after = time.Now()
	var over *Terminated
	switch {
	case outcome == "runs":
		must(l.t, err)
		l.held[name] = lease
		return
	case outcome == "taken":
		if !errors.Is(err, ErrTaken) {
			l.t.Fatal(err)
		}
	case !errors.As(err, &over) || over.Reason != Reason(outcome):
		l.t.Fatal(err, "is not", outcome)
	}
	if !lease.Release() {
		l.t.Fatal("no cancellation can be aimed at it")
	}
}

// cancelled ends a query with the error of a driver while its rows are read, as the wrapper of
// database/sql does.
func (l *leases) cancelled(name string, outcome any) {
	l.t.Helper()
	lease, database := l.held[name], Postgres("shop")
	token := l.tokens[lease.request][0]
	ctx := token.In(context.Background())
	of := &Connection{stopClient: l.stopClient, database: &database, lease: lease, holds: 1}
	use := &Use{of: of, token: token, lease: lease, from: ctx, ctx: ctx, cancel: func() {}}
	err, isOver := use.mapError(said{"57014"}), outcome != nil
	must(l.t, use.End(nil))
	var over *Terminated
	if errors.As(err, &over) != isOver || isOver && over.Reason != Reason(outcome.(string)) || of.isDoubtful {
		l.t.Fatal(err, "is not", outcome)
	}
}

// says compares the lines that the daemon has read since the last comparison.
func (l *leases) says(expected []any) {
	l.t.Helper()
	until(l.t, func() bool { return len(l.heard()) >= l.checked+len(expected) })
	heard := l.heard()
	var lines, wanted []string
	for _, line := range heard[l.checked:] {
		line, _, _ = strings.Cut(line, " not-after=")
		lines = append(lines, line)
	}
	for _, line := range expected {
		wanted = append(wanted, line.(string))
	}
	l.checked = len(heard)
	if !slices.Equal(lines, wanted) {
		l.t.Fatalf("%q is not %q", lines, wanted)
	}
}

func (l *leases) heard() []string {
	l.desk.mutex.Lock()
	defer l.desk.mutex.Unlock()
	return slices.Clone(l.desk.heard)
}

// lasts checks the end of the last lease, which is so far from its begin.
func (l *leases) lasts(expected any) {
	l.t.Helper()
	heard := l.heard()
	_, moment, isThere := strings.Cut(heard[len(heard)-1], " not-after=")
	if isThere != (expected != nil) {
		l.t.Fatal(heard)
	}
	if !isThere {
		return
	}
	end, err := strconv.ParseInt(moment, 10, 64)
	must(l.t, err)
	from, to := l.before.Add(span(expected)).UnixMilli()-1, l.after.Add(span(expected)).UnixMilli()+1
	if end < from || end > to {
		l.t.Fatal(end, "is not from", from, "to", to)
	}
}

// hasStats waits until the counts are the expected ones: 0 for one that is not named, and any for
// null.
func (l *leases) hasStats(expected map[string]any) {
	l.t.Helper()
	known := l.counts()
	for name := range expected {
		if _, isOne := known[name]; !isOne {
			l.t.Fatal("no count is called", name)
		}
	}
	until(l.t, func() bool {
		for name, number := range l.counts() {
			value, isNamed := expected[name]
			wanted, isNumber := value.(float64)
			if (isNumber || !isNamed) && float64(number) != wanted {
				return false
			}
		}
		return true
	})
}

func (l *leases) counts() map[string]uint64 {
	stats := l.stopClient.Stats()
	return map[string]uint64{
		"leased": stats.Leased, "stopped": stats.Stopped, "taken": stats.Taken, "refused": stats.Refused,
		"unnamed": stats.Unnamed, "unreachable": stats.Unreachable, "spoiled": stats.Doubtful, "stops": stats.Stops,
	}
}

func TestTranscriptsAreThoseOfTheKit(t *testing.T) {
	all := append(vectors[transcript](t, "leases.json", "transcripts"), vectors[transcript](t, "stops.json", "transcripts")...)
	for _, one := range all {
		vector := one
		t.Run(vector.Why, func(t *testing.T) {
			l := &leases{walker: walk(t), held: map[string]*Lease{}, answers: map[string]*string{}}
			maps.Copy(l.answers, vector.Answers)
			l.desk = open(t, l.reply)
			socket := l.desk.socket
			if isOff(vector.Daemon) {
				socket = filepath.Join(t.TempDir(), "nobody")
			}
			l.stopClient = NewStopClient(socket)
			for _, step := range flat(vector.Steps) {
				l.does(step[0].(string), step[1:])
			}
			for _, lease := range l.held {
				lease.Release()
			}
			l.stopClient.Close()
		})
	}
}
