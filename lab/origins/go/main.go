// An origin on the HTTP server of Go's standard library, without its router, which would redirect.
package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
)

// The maximum length of the field with the reflection, in bytes. A response to HEAD has no body, so
// its reflection is in a field, which must be short.
const longestField = 6000

type seen struct {
	Method string  `json:"method"`
	Target string  `json:"target"`
	Host   string  `json:"host"`
	Route  string  `json:"route"`
	Body   *string `json:"body"`
}

// latin returns the bytes as text, with one character for each byte.
func latin(octets string) string {
	var text strings.Builder
	for i := 0; i < len(octets); i++ {
		text.WriteRune(rune(octets[i]))
	}
	return text.String()
}

// ascii returns JSON text in which characters beyond ASCII are escaped. All characters of the value
// must be below 256.
func ascii(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var plain strings.Builder
	for _, r := range string(text) {
		if r < 127 {
			plain.WriteRune(r)
		} else {
			fmt.Fprintf(&plain, "\\u%04x", r)
		}
	}
	return plain.String()
}

func answer(w http.ResponseWriter, r *http.Request) {
	octets, err := io.ReadAll(r.Body)
	if err != nil {
		// If the body is incomplete, the request is not reflected, and no answer is sent.
		panic(http.ErrAbortHandler)
	}
	body := hex.EncodeToString(octets)
	is := seen{latin(r.Method), latin(r.RequestURI), latin(r.Host), latin(r.URL.Path), &body}
	text := ascii(is)
	if r.Method == http.MethodHead {
		if len(text) > longestField {
			is.Body = nil
			text = ascii(is)
		}
		w.Header().Set("Reflection", text)
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, text)
}

func main() {
	if os.Args[1] == "version" {
		fmt.Println("Go", runtime.Version())
		return
	}
	server := http.Server{
		Addr:                         "127.0.0.1:" + os.Args[1],
		Handler:                      http.HandlerFunc(answer),
		DisableGeneralOptionsHandler: true,
	}
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
