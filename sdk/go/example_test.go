package bywash_test

// The example of README.md, word for word, and its way to use the module.

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bywash "bywash.dev/go"
)

func Example() {
	controller, err := bywash.NewController(bywash.NewClass("search", time.Second, 30*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	terminate, err := controller.Middleware("search")
	if err != nil {
		log.Fatal(err)
	}
	search := func(w http.ResponseWriter, r *http.Request) {
		found := 0
		for candidate := 0; candidate < 1000; candidate++ {
			// A loop that waits for nothing: it has to ask.
			if bywash.Checkpoint(r.Context()) != nil {
				return // answered with 504
			}
			found += candidate % 2
		}
		// The last checkpoint: from here on it may write.
		if bywash.From(r.Context()).CancelTermination() != nil {
			return
		}
		fmt.Fprint(w, found)
	}
	mux := http.NewServeMux()
	mux.Handle("/search", terminate(http.HandlerFunc(search)))
	server := httptest.NewServer(mux)
	defer server.Close()

	response, err := http.Get(server.URL + "/search")
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	fmt.Println(response.StatusCode)
	// Output: 200
}

func TestTheReadmeHasThisExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(source), "func Example")
	example, _, _ = strings.Cut(example, "\n}\n")
	if !strings.Contains(string(readme), "```go\nfunc Example"+example+"\n}\n```") {
		t.Fatal("README.md has another example")
	}
}

func TestAnotherModuleCanUseThisOneAsTheReadmeSays(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(string(readme), "```sh\n")
	command, after, _ := strings.Cut(command, "\n```")
	_, imports, _ := strings.Cut(after, "```go\n")
	imports, _, _ = strings.Cut(imports, "\n```")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	program := "package main\n\n" + imports + "\n\nfunc main() { println(bywash.Header) }\n"
	if err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		"go mod init example.com/shop", strings.Replace(command, "../bywash/sdk/go", here, 1), "go run .",
	} {
		run := exec.Command("go", strings.Fields(words)[1:]...)
		run.Dir, run.Env = folder, append(os.Environ(), "GOPROXY=off", "GOFLAGS=-p=1", "GOWORK=off")
		if output, err := run.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", words, err, output)
		}
	}
}
