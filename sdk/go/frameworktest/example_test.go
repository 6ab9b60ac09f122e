package frameworktest

// The examples of ../README.md, word for word.

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	bywash "bywash.dev/go"
	"github.com/gin-gonic/gin"
	"github.com/labstack/echo/v4"
)

// newTerminate returns the middleware of the README's first example.
func newTerminate() func(http.Handler) http.Handler {
	controller, err := bywash.NewController(bywash.NewClass("search", time.Second, 30*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	terminate, err := controller.Middleware("search")
	if err != nil {
		log.Fatal(err)
	}
	return terminate
}

var terminate = newTerminate()

// search waits for longer than any request may run.
func search(ctx context.Context) (string, error) {
	<-ctx.Done()
	return "", fmt.Errorf("search: %w", ctx.Err())
}

func Example_gin() {
	engine := gin.New()
	engine.GET("/search", func(c *gin.Context) {
		found, err := search(c.Request.Context())
		if bywash.Checkpoint(c.Request.Context()) != nil {
			return // answered with 504
		} else if err != nil {
			c.Status(http.StatusInternalServerError)
			return
		}
		c.String(http.StatusOK, found)
	})
	handler := terminate(engine) // the http.Server's handler

	request := httptest.NewRequest("GET", "/search", nil)
	request.Header.Set("Bywash-Deadline", "20") // in milliseconds
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	fmt.Println(response.Code)
	// Output: 504
}

// handleError answers errors, except those of a request that is over.
func handleError(err error, c echo.Context) {
	_, isOwn := err.(*echo.HTTPError)
	if !isOwn && bywash.Checkpoint(c.Request().Context()) != nil {
		return // answered with 504
	}
	c.Echo().DefaultHTTPErrorHandler(err, c)
}

func Example_echo() {
	e := echo.New()
	e.HTTPErrorHandler = handleError
	e.GET("/search", func(c echo.Context) error {
		found, err := search(c.Request().Context())
		if err != nil {
			return err
		}
		return c.String(http.StatusOK, found)
	})
	handler := terminate(e) // the http.Server's handler

	request := httptest.NewRequest("GET", "/search", nil)
	request.Header.Set("Bywash-Deadline", "20") // in milliseconds
	response := httptest.NewRecorder()
	handler.ServeHTTP(response, request)
	fmt.Println(response.Code)
	// Output: 504
}

func TestTheReadmeHasTheseExamples(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	check(t, err)
	source, err := os.ReadFile("example_test.go")
	check(t, err)
	for _, begin := range []string{"func Example_gin", "// handleError"} {
		_, example, _ := strings.Cut(string(source), "\n"+begin)
		example, _, _ = strings.Cut(example, "// Output: 504\n}\n")
		if !strings.Contains(string(readme), "```go\n"+begin+example+"// Output: 504\n}\n```") {
			t.Error("README.md has another " + begin)
		}
	}
}
