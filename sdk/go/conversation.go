package bywash

// A conversation with the stop daemon: numbered lines over a socket, answered in any order
// (crates/lease).
//
// The mutex guards the unsent lines, the writer and the waiting callers; it is held for a few
// steps. A goroutine that submits a line while nothing is being written becomes the writer, and
// also sends the lines that others submit meanwhile. So no goroutine is woken for a line. Lines are
// sent in the order in which they were submitted, so the daemon reads a stop before the releases
// that follow it.
//
// The conversation is over when the stream breaks, or when an answer is late or cannot be parsed.
// From then on no line is answered, and all leases of the conversation have ended.

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
	// Why a lease was answered STOPPED; else empty.
	stopped Reason
	// The daemon's word for a refusal, and the whole refusal as the daemon has sent it; else empty.
	fault, refusal string
}

type conversation struct {
	stream net.Conn
	// Closed when the conversation is over.
	over chan struct{}

	mutex     sync.Mutex
	number    uint64
	unsent    []byte
	isWriting bool
	isOver    bool
	// The callers that wait for an answer, by its number; and the callbacks for the process's own
	// leases, by the number of the lease.
	waiting map[uint64]chan<- answer
	own     map[uint64]func(Reason)
}

// converse begins a conversation. It calls ended once, when the conversation is over.
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
	errOver     = errors.New("bywash: the connection to the stop daemon is closed")
	errNoAnswer = errors.New("bywash: the stop daemon has not answered in time, or has sent an invalid answer")
)

// ask submits a line and waits for its answer. If there is none (errNoAnswer), the conversation is
// over. If the conversation was over before (errOver), nothing was sent.
func (c *conversation) ask(command string) (answer, error) {
	answered := make(chan answer, 1)
	if !c.say(command, answered) {
		return answer{}, errOver
	}
	return c.hears(answered)
}

// hears sends the submitted lines and waits for the answer.
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
	// The answer may have come at the same moment.
	select {
	case given := <-answered:
		return given, nil
	default:
		c.end()
		return answer{}, errNoAnswer
	}
}

// say queues a line, which send sends. If answered is nil, no caller waits for the answer.
func (c *conversation) say(command string, answered chan<- answer) bool {
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
	c.unsent = append(append(append(c.unsent, ' '), command...), '\n')
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
		// The conversation is over, so an error of closing the stream is of no use.
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
	if number > c.number {
		// It answers a line that was never sent.
		return errNoAnswer
	}
	if answered := c.waiting[number]; answered != nil {
		delete(c.waiting, number)
		// The channel's buffer has room for the one answer.
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
	case words[0] == "ERR":
		// The word may be missing.
		return answer{fault: append(words, "")[1], refusal: strings.Join(words, " ")}, nil
	}
	return answer{}, errNoAnswer
}

// isTold handles a line that answers nothing: STOPPED REQUEST REASON NUMBER for a lease of this
// process's own. Any other means that the daemon could not parse a line of ours.
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

// tells registers the callback for one of the process's own leases; nil removes it.
func (c *conversation) tells(number uint64, told func(Reason)) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if told == nil {
		delete(c.own, number)
	} else {
		c.own[number] = told
	}
}
