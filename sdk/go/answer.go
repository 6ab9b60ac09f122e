package bywash

// The deadline in a request's head, and the response to a request that is terminated.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Header is the header field with the number of milliseconds that are left to a request. A sender
// can only shorten its own request with it.
const Header = "Bywash-Deadline"

// timeLeft returns the time that is left to a request by the deadline in its header. Anything but a
// single number of 1 to 9 digits counts as no deadline.
func timeLeft(header http.Header) time.Duration {
	values := header[Header]
	if len(values) != 1 || len(values[0]) < 1 || len(values[0]) > 9 {
		return never
	}
	milliseconds := time.Duration(0)
	for _, digit := range []byte(values[0]) {
		if digit < '0' || digit > '9' {
			return never
		}
		milliseconds = milliseconds*10 + time.Duration(digit-'0')
	}
	return milliseconds * time.Millisecond
}

// The problem types of the response (RFC 9457): `busy`, which the gateway uses as well (IETF draft
// on RateLimit), and `plain`, which says nothing beyond the status.
const (
	busy  = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
	plain = "about:blank"
)

type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Reason Reason `json:"reason"`
	// RetryAfter is in seconds. It is only set if the reason is RanTooLong: the other reasons say
	// nothing about when to retry.
	RetryAfter int64 `json:"retry-after,omitempty"`
}

func problemOf(t *Terminated) problem {
	p := problem{Type: plain, Status: http.StatusGatewayTimeout, Reason: t.Reason}
	switch t.Reason {
	case RanTooLong:
		p.Type, p.RetryAfter = busy, max(int64((t.RetryAfter+time.Second-1)/time.Second), 1)
		p.Title = fmt.Sprintf("The site is very busy. Please try again in %d s.", p.RetryAfter)
	case Deadline:
		p.Title = "The deadline of this request has passed."
	case ClientLeft:
		p.Title = "The client of this request has left."
	}
	return p
}

// refuse answers a terminated request with 504. The body is problem+json (RFC 9457) if the client
// accepts JSON, else a line of text.
func refuse(w http.ResponseWriter, r *http.Request, t *Terminated) {
	p := problemOf(t)
	body := []byte(fmt.Sprintf("%s (%s)\n", p.Title, p.Reason))
	head := w.Header()
	head.Set("Content-Type", "text/plain; charset=utf-8")
	if strings.Contains(strings.ToLower(strings.Join(r.Header["Accept"], ",")), "json") {
		// Marshalling cannot fail: there are only strings and numbers.
		body, _ = json.Marshal(p)
		head.Set("Content-Type", "application/problem+json")
	}
	if p.RetryAfter > 0 {
		head.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	head.Set("Content-Length", strconv.Itoa(len(body)))
	head.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusGatewayTimeout)
	if r.Method != http.MethodHead {
		// The error is of no use: the client has left.
		_, _ = w.Write(body)
	}
}
