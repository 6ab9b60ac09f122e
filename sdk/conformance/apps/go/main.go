// The application of sdk/conformance in Go.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	bywash "bywash.dev/go"
)

// query leases a connection, and works with it until the request is over.
func query(w http.ResponseWriter, r *http.Request, stopClient *bywash.StopClient) {
	lease, err := stopClient.Lease(r.Context(), "shop", 7)
	var over *bywash.Terminated
	switch {
	case errors.As(err, &over):
		fmt.Fprintf(w, "stopped %s", over.Reason)
	case errors.Is(err, bywash.ErrTaken):
		fmt.Fprint(w, "taken")
	default:
		<-r.Context().Done()
		lease.Release()
	}
}

// fields returns the header fields for calls to other services, as JSON.
func fields(r *http.Request) []byte {
	joined := map[string]string{}
	for field, values := range bywash.Outgoing(r.Context()) {
		if len(values) > 0 {
			joined[field] = strings.Join(values, ",")
		}
	}
	// Marshalling cannot fail: there are only strings.
	text, _ := json.Marshal(joined)
	return text
}

func main() {
	controller, err := bywash.NewController(
		bywash.NewClass("work", time.Second, time.Hour), bywash.NewClass("busy", 50*time.Millisecond, 50*time.Millisecond))
	if err != nil {
		log.Fatal(err)
	}
	stopClient := bywash.NewStopClient("")
	terminate := controller.MiddlewareBy(func(r *http.Request) string {
		if r.URL.Path == "/busy" {
			return "busy"
		}
		return "work"
	})
	handler := func(w http.ResponseWriter, r *http.Request) {
		token := bywash.From(r.Context())
		switch r.URL.Path {
		case "/name":
			fmt.Fprint(w, token.Name())
		case "/left":
			fmt.Fprint(w, token.Left().Milliseconds())
		case "/outgoing":
			_, _ = w.Write(fields(r))
		case "/query":
			query(w, r, stopClient)
		default:
			<-r.Context().Done()
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	log.Fatal(http.Serve(listener, terminate(http.HandlerFunc(handler))))
}
