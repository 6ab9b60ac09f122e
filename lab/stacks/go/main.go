// A handler of net/http for `stacks` that works in small steps. There is a plain one, one that
// watches its context, and one within the SDK's middleware.
package main

import (
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	bywash "bywash.dev/go"
)

var observer net.Conn

func work(w http.ResponseWriter, r *http.Request) {
	words := strings.Split(r.URL.Path, "/")
	how, name := words[1], words[2]
	tell := func(word string) { io.WriteString(observer, name+" "+word) }
	told := r.Context().Done()
	if how == "plain" {
		told = nil
	}
	for step := 0; step < 40; step++ {
		tell("step")
		select {
		case <-told:
			tell("told")
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	tell("done")
	io.WriteString(w, "done")
}

func main() {
	var err error
	if observer, err = net.Dial("udp", "127.0.0.1:"+os.Getenv("STACKS_OBSERVER")); err != nil {
		log.Fatal(err)
	}
	controller, err := bywash.NewController(bywash.NewClass("work", time.Second, 30*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	terminate, err := controller.Middleware("work")
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("/sdk/", terminate(http.HandlerFunc(work)))
	http.HandleFunc("/", work)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("STACKS_PORT"), nil))
}
