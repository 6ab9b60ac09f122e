package bywash

// A conversation with the stop daemon: lines over a socket, numbered, answered in any order (crates/lease).
//
// The mutex guards what has not been sent, who writes, and who waits; it is held for a few steps. Whoever says
// something while nobody writes is the one who writes, and sends what others say meanwhile along: no goroutine is
// woken for a line. A line that was said first is sent first, so a stop is heard before the releases that follow.
//
// It is over when the stream breaks, when an answer takes too long, or when it cannot be understood. Then nobody
// gets an answer any more, and all leases that were made in it have ended.

import (
	"bufio"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// answerWithin is how long an answer may take.
const answerWithin = 100 * time.Millisecond

type answer struct {
	isDone bool
	// Why a lease does not hold; else empty.
	stopped Reason
	// The word of what the daemon refuses; else empty.
	fault string
}

type conversation struct {
	stream net.Conn
	// Closed when it is over.
	over chan struct{}

	mutex     sync.Mutex
	number    uint64
	unsent    []byte
	isWriting bool
	isOver    bool
	// Who waits for an answer, by its number; and whom to tell that his own lease is stopped.
	waiting map[uint64]chan<- answer
	own     map[uint64]func(Reason)
}

// converse begins a conversation. ended is called once, when it is over.
func converse(stream net.Conn, ended func()) *conversation {
	c := &conversation{
		stream: stream, over: make(chan struct{}),
		waiting: map[uint64]chan<- answer{}, own: map[uint64]func(Reason){},
	}
	go func() {
		c.listen()
		c.end()
		ended()
	}()
	return c
}

var (
	errOver     = errors.New("bywash: the conversation with the stop daemon is over")
	errNoAnswer = errors.New("bywash: the stop daemon has not answered, or what is no answer")
)

// ask says something, and waits for the answer. Without one (errNoAnswer) the conversation is over; if it has been
// before (errOver), nothing was said.
func (c *conversation) ask(order string) (answer, error) {
	answered := make(chan answer, 1)
	if !c.say(order, answered) {
		return answer{}, errOver
	}
	return c.hears(answered)
}

// hears sends what was said, and waits for the answer to it.
func (c *conversation) hears(answered <-chan answer) (answer, error) {
	c.send()
	late := time.NewTimer(answerWithin)
	defer late.Stop()
	select {
	case given := <-answered:
		return given, nil
	case <-c.over:
	case <-late.C:
	}
	// It may have come in the same moment.
	select {
	case given := <-answered:
		return given, nil
	default:
		c.end()
		return answer{}, errNoAnswer
	}
}

// say queues a line; send sends it. Nobody waits for the answer if answered is nil.
func (c *conversation) say(order string, answered chan<- answer) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.isOver {
		return false
	}
	c.number++
	if answered != nil {
		c.waiting[c.number] = answered
	}
	c.unsent = strconv.AppendUint(c.unsent, c.number, 10)
	c.unsent = append(append(append(c.unsent, ' '), order...), '\n')
	return true
}

func (c *conversation) send() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.isWriting {
		return
	}
	c.isWriting = true
	for len(c.unsent) > 0 && !c.isOver {
		lines := c.unsent
		c.unsent = nil
		c.mutex.Unlock()
		_, err := c.stream.Write(lines)
		if err != nil {
			c.end()
		}
		c.mutex.Lock()
	}
	c.isWriting = false
}

func (c *conversation) end() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.isOver {
		c.isOver = true
		close(c.over)
		// It has said all that it will: what its closing returns is of no use.
		_ = c.stream.Close()
	}
}

func (c *conversation) listen() {
	lines := bufio.NewScanner(c.stream)
	for lines.Scan() {
		if c.hear(lines.Text()) != nil {
			return
		}
	}
}

func (c *conversation) hear(line string) error {
	words := strings.SplitN(line, " ", 5)
	number, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil || len(words) < 2 {
		return errNoAnswer
	}
	if number == 0 {
		return c.isTold(words[1:])
	}
	given, err := parseAnswer(words[1:])
	if err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if answered := c.waiting[number]; answered != nil {
		delete(c.waiting, number)
		// There is room for the one answer.
		answered <- given
	}
	return nil
}

func parseAnswer(words []string) (answer, error) {
	switch {
	case words[0] == "OK":
		return answer{isDone: true}, nil
	case words[0] == "STOPPED" && len(words) == 2 && isReason(words[1]):
		return answer{stopped: Reason(words[1])}, nil
	case words[0] == "ERR" && len(words) >= 2:
		return answer{fault: words[1]}, nil
	}
	return answer{}, errNoAnswer
}

// isTold hears what nobody asked for: STOPPED REQUEST REASON NUMBER, of a lease of one's own; or what became of a
// line that was none.
func (c *conversation) isTold(words []string) error {
	if words[0] != "STOPPED" {
		return errNoAnswer
	}
	if len(words) != 4 || !isReason(words[2]) {
		return errNoAnswer
	}
	number, err := strconv.ParseUint(words[3], 10, 64)
	if err != nil {
		return errNoAnswer
	}
	c.mutex.Lock()
	told := c.own[number]
	c.mutex.Unlock()
	if told != nil {
		told(Reason(words[2]))
	}
	return nil
}

func isReason(word string) bool {
	switch Reason(word) {
	case RanTooLong, ClientLeft, Deadline:
		return true
	}
	return false
}

// tells registers whom to tell of a lease of his own, or nobody any more.
func (c *conversation) tells(number uint64, told func(Reason)) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if told == nil {
		delete(c.own, number)
	} else {
		c.own[number] = told
	}
}
