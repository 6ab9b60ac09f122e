package bywash

// Tests that run the vectors of sdk/conformance, which are the same for every language: fields,
// answers and texts. Its README.md describes their format.

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// listsOf has the lists of each file.
var listsOf = map[string][]string{
	"names.json":      {"requests", "databases"},
	"deadlines.json":  {"requests"},
	"outgoing.json":   {"requests"},
	"answers.json":    {"answers"},
	"statements.json": {"statements"},
	"controller.json": {"sequences"},
	"leases.json":     {"transcripts"},
	"stops.json":      {"transcripts"},
}

// anyVector has the fields that each vector may have.
type anyVector struct {
	Why, Source string
	Except      map[string]string
	InMemory    bool `json:"in_memory"`
}

// vectors returns the vectors of a file that hold for this library. It fails on unknown fields.
func vectors[T any](t *testing.T, file, key string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../conformance", file))
	must(t, err)
	var groups map[string]json.RawMessage
	must(t, json.Unmarshal(text, &groups))
	for name := range groups {
		if name != "about" && !slices.Contains(listsOf[file], name) {
			t.Fatalf("%s has an unknown list %s", file, name)
		}
	}
	var all []json.RawMessage
	must(t, json.Unmarshal(groups[key], &all))
	var found []T
	for _, one := range all {
		var vector T
		decoder := json.NewDecoder(bytes.NewReader(one))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&vector); err != nil {
			t.Fatalf("%s: %v in %s", file, err, one)
		}
		var exceptions struct{ Except map[string]string }
		must(t, json.Unmarshal(one, &exceptions))
		if _, isOne := exceptions.Except["go"]; !isOne {
			found = append(found, vector)
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no %s", file, key)
	}
	return found
}

// madeName matches the names that the middleware makes, like mod_bywash_sentry.
var madeName = regexp.MustCompile("^[0-9a-f]{16}$")

// isOff returns whether a setting that is on by default is off.
func isOff(setting *bool) bool { return setting != nil && !*setting }

// micros returns milliseconds in whole microseconds, which is the precision of the vectors.
func micros(milliseconds float64) time.Duration {
	return time.Duration(milliseconds*1000+0.5) * time.Microsecond
}

// through sends a request through a middleware, and returns the answer.
func through(t *testing.T, c *Controller, options []Option, handle http.HandlerFunc, method string,
	fields [][2]string) *httptest.ResponseRecorder {
	t.Helper()
	wrapped, err := c.Middleware("search", options...)
	must(t, err)
	request := httptest.NewRequest(method, "/", nil)
	for _, field := range fields {
		request.Header.Add(field[0], field[1])
	}
	recorder := httptest.NewRecorder()
	wrapped(handle).ServeHTTP(recorder, request)
	return recorder
}

// each returns the values as fields of this name.
func each(field string, values []string) [][2]string {
	var fields [][2]string
	for _, value := range values {
		fields = append(fields, [2]string{field, value})
	}
	return fields
}

type nameVector struct {
	anyVector
	Values      []string
	Name        *string
	TrustsNames *bool `json:"trusts_names"`
}

func TestNamesOfRequestsAreThoseOfTheKit(t *testing.T) {
	made := map[string]bool{}
	for _, vector := range vectors[nameVector](t, "names.json", "requests") {
		var options []Option
		if isOff(vector.TrustsNames) {
			options = append(options, DistrustRequest)
		}
		c, _ := search(t)
		name := ""
		through(t, c, options, func(_ http.ResponseWriter, r *http.Request) {
			name = From(r.Context()).Name()
		}, "GET", each(RequestHeader, vector.Values))
		if vector.Name != nil {
			if name != *vector.Name {
				t.Errorf("%s %q", vector.Why, name)
			}
			continue
		}
		if !madeName.MatchString(name) || made[name] {
			t.Errorf("%s %q", vector.Why, name)
		}
		made[name] = true
	}
}

type databaseVector struct {
	anyVector
	Name    string
	IsValid bool `json:"is_valid"`
}

func TestNamesOfDatabasesAreThoseOfTheKit(t *testing.T) {
	for _, vector := range vectors[databaseVector](t, "names.json", "databases") {
		if _, err := NewStopClient("").Connector(nil, MySQL(vector.Name)); (err == nil) != vector.IsValid {
			t.Errorf("%s %q: %v", vector.Why, vector.Name, err)
		}
	}
}

type deadlineVector struct {
	anyVector
	Values          []string
	LeftMs          float64 `json:"left_ms"`
	TrustsDeadlines *bool   `json:"trusts_deadlines"`
}

func TestDeadlinesAreThoseOfTheKit(t *testing.T) {
	for _, vector := range vectors[deadlineVector](t, "deadlines.json", "requests") {
		var options []Option
		if isOff(vector.TrustsDeadlines) {
			options = append(options, DistrustDeadline)
		}
		c, _ := controller(t, NewClass("search", second, time.Hour))
		left := time.Duration(-1)
		recorder := through(t, c, options, func(_ http.ResponseWriter, r *http.Request) {
			left = From(r.Context()).Left()
		}, "GET", each(Header, vector.Values))
		status, expected, ended := 200, micros(vector.LeftMs), uint64(0)
		if vector.LeftMs == 0 {
			// It does not begin.
			status, expected, ended = 504, -1, 1
		}
		stats := c.Stats()["search"]
		if recorder.Code != status || left != expected || stats.Deadline != ended || stats.Lost != 0 {
			t.Errorf("%s %d, %v, %+v", vector.Why, recorder.Code, left, stats)
		}
	}
}

type outgoingVector struct {
	anyVector
	Fields      [][2]string
	AfterMs     float64 `json:"after_ms"`
	Settles     bool
	TrustsNames *bool `json:"trusts_names"`
	Outgoing    map[string]*string
}

func TestWhatIsPassedOnIsThatOfTheKit(t *testing.T) {
	for _, vector := range vectors[outgoingVector](t, "outgoing.json", "requests") {
		var options []Option
		if isOff(vector.TrustsNames) {
			options = append(options, DistrustRequest)
		}
		c, clock := search(t)
		seen := map[string]string{}
		through(t, c, options, func(_ http.ResponseWriter, r *http.Request) {
			clock.goes(micros(vector.AfterMs))
			if vector.Settles {
				From(r.Context()).Settle()
			}
			for field, values := range Outgoing(r.Context()) {
				if len(values) > 0 {
					seen[strings.ToLower(field)] = strings.Join(values, ",")
				}
			}
		}, "GET", vector.Fields)
		expected := map[string]string{}
		for field, value := range vector.Outgoing {
			if value != nil {
				expected[field] = *value
			} else if made := seen[field]; madeName.MatchString(made) {
				expected[field] = made
			}
		}
		if len(expected) != len(vector.Outgoing) || !reflect.DeepEqual(seen, expected) {
			t.Errorf("%s %v", vector.Why, seen)
		}
	}
}

type answerVector struct {
	anyVector
	Reason       Reason
	RetryAfterMs float64 `json:"retry_after_ms"`
	Method       string
	Accept       []string
	Status       int
	Fields       map[string]string
	Text         string
	Problem      map[string]any
}

// answer returns the answer to a request that ends as the vector says.
func (v *answerVector) answer(t *testing.T, method string) *httptest.ResponseRecorder {
	t.Helper()
	class := NewClass("search", second, 9*second)
	class.RetryAfter = micros(v.RetryAfterMs)
	c, clock := controller(t, class)
	fields := each("Accept", v.Accept)
	if v.Reason == Deadline {
		fields = append(fields, [2]string{Header, "0"})
	}
	return through(t, c, nil, func(_ http.ResponseWriter, r *http.Request) {
		token := From(r.Context())
		if v.Reason == ClientLeft {
			token.Leave()
		}
		clock.goes(9 * second)
		if token.Checkpoint() == nil {
			t.Errorf("%s it goes on", v.Why)
		}
	}, method, fields)
}

func TestAnswersAreThoseOfTheKit(t *testing.T) {
	for _, vector := range vectors[answerVector](t, "answers.json", "answers") {
		body := vector.answer(t, "GET").Body.Bytes()
		recorder := vector.answer(t, vector.Method)
		expected := http.Header{"Content-Length": {strconv.Itoa(len(body))}}
		for field, value := range vector.Fields {
			expected.Set(field, value)
		}
		if recorder.Code != vector.Status || !reflect.DeepEqual(recorder.Header(), expected) {
			t.Errorf("%s %d %v", vector.Why, recorder.Code, recorder.Header())
		}
		said := string(body)
		if vector.Method == http.MethodHead {
			said = ""
		}
		if recorder.Body.String() != said {
			t.Errorf("%s %s", vector.Why, recorder.Body)
		}
		if vector.Problem == nil {
			if string(body) != vector.Text {
				t.Errorf("%s %s", vector.Why, body)
			}
			continue
		}
		var problem map[string]any
		must(t, json.Unmarshal(body, &problem))
		if !reflect.DeepEqual(problem, vector.Problem) {
			t.Errorf("%s %s", vector.Why, body)
		}
	}
}

type statementVector struct {
	anyVector
	Text      string
	IsControl bool `json:"is_control"`
}

func TestStatementsAreThoseOfTheKit(t *testing.T) {
	for _, vector := range vectors[statementVector](t, "statements.json", "statements") {
		if isControl(vector.Text) != vector.IsControl {
			t.Errorf("%q: %v: %s", vector.Text, !vector.IsControl, vector.Why)
		}
	}
}
